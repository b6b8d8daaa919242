"""What comes from outside: torch modules, files of spectra."""
