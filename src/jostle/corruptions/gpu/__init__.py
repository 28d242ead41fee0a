"""Corruptions of frames on a GPU: the same bytes as the compiled kernels, for many frames at once.

A form has the name of its corruption, in a module named after the corruption's family. It takes (N, H, W, 3) uint8 on
the device, the corruption's value and options, and the contexts of the frames; and gives as many frames. Of an option
that it does not take there is no form. Sums are whole numbers, or single precision in the kernels' order. A form
launches Triton programs, in a module named so, which fuse nothing and round twice where the kernels do. Without Triton
frames go by the compiled kernels, there and back; the forms of `light` are tensor operations as well.
"""

from __future__ import annotations
