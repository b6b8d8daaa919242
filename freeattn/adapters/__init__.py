"""What other programs write or hold: configuration files, modules of torch, files of spectra."""
