//! Free capacity by cause and GPU-time in money.
