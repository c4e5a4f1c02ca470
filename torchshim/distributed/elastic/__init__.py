"""What programs use that `torchrun` starts; here it starts one process (`run`)."""
