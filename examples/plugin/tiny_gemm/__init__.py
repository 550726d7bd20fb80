"""The accelerator tiny_gemm for ilaverify."""
