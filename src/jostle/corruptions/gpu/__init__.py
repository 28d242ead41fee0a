"""Corruptions of frames on a GPU: the same bytes as the compiled kernels, for many frames at once.

A form has the name of its corruption, in a module named after the corruption's family. It takes (N, H, W, 3) uint8 on
any device, the corruption's value and options, and the moments of the frames; and gives as many frames. Of an option
that it does not take there is no form. Sums are whole numbers, or single precision in the kernels' order. Where
Triton is there a form is a program, in a module named so; otherwise every step is an operation of its own. Either way
nothing is fused and rounded once where the kernels round twice.
"""

from __future__ import annotations
