"""Pure deciding code: values in, values out. Nothing here touches disk, clock, threads or logs."""
