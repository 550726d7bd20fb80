"""A whole accelerator: its model, a driver, what this shall compute, and the claim that it does, for every length.

``ilaverify mapping relu --module relu`` proves it, from the folder of this file.
"""

from ila_lang import Fragment, Ila, Kernel, bv, const, ite, mem, var
from ila_lang.mapping import TensorMapping
from rewrites.mappings.claim import MappingClaim
from rewrites.targets.target import Model, Target

n, x, y = var("n", bv(32)), var("x", mem(32, 8)), var("y", mem(32, 8))

device = Ila("clamp", "START clears the negative ones of the first bytes of a buffer.")
op, at, data = device.input("op", 2), device.input("at", 12), device.input("data", 13)
buffer, size, out = device.memory("buffer", 12, 8), device.state("size", 13), device.state("out", 8)
clear = Kernel("clear")
with clear.loop("i", size) as i:
    byte = clear.load("byte", buffer, i[11:0])
    clear.store(buffer, i[11:0], byte & ~byte.sext(16)[15:8])
device.instruction("STORE").set_decode(op == 0).update(buffer, buffer.store(at, data[7:0]))
device.instruction("START").set_decode(op == 1).update(size, data).start(clear)
device.instruction("LOAD").set_decode(op >= 2).update(out, buffer.load(at))

driver = Kernel("driver")
with driver.loop("i", n) as i:
    driver.command("store", op=const(0, 2), at=i[11:0], data=x.load(i).zext(13))
driver.command("start", op=const(1, 2), at=const(0, 12), data=n[12:0])
with driver.loop("j", n) as j:
    driver.command("load", op=const(2, 2), at=j[11:0], data=const(0, 13))
    driver.store(y, j, out)

ir = Ila("ir", "The larger of each element and 0.")
extent = ir.input("extent", 32)
length, source, target = ir.state("length", 32), ir.memory("source", 32, 8), ir.memory("target", 32, 8)
relu = Kernel("relu")
with relu.loop("i", length) as i:
    element = relu.load("element", source, i)
    relu.store(target, i, ite(element.slt(0), const(0, 8), element))
ir.instruction("RELU").update(length, extent).start(relu)
call = Kernel("call")
call.command("relu", extent=n)

claim = TensorMapping(
    name="relu",
    statement="the driver computes relu of n signed bytes",
    parameters={"n": n},
    domain=(("1 <= n <= 4096", (const(1, 32) <= n) & (n <= 4096)),),
    device=Fragment("driver", device, {"n": n}, {"x": x, "y": y}, driver),
    ir=Fragment("call", ir, {"n": n}, {}, call),
    inputs=(("x", "source"),),
    output=("y", "target"),
    rows=const(1, 32),
    columns=n,
    lemmas=(),
    abstract=frozenset(),
    sizes_of=lambda rows, columns: {"n": columns},
)

TARGET = Target(
    "relu",
    models=(Model("clamp", "clears negative bytes in a buffer", lambda: device),),
    mappings=(MappingClaim("relu", "relu of signed bytes on clamp", lambda: claim),),
)
