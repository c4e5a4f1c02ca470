"""Graphs of programs (`torch.fx`): not supported; nothing has to be traced here."""
