"""What everything stands on: files, folders, arguments, the machine, suspicious reading, the looks of figures."""
