//go:build !linux

package journal

import "os"

func flush(f *os.File) error { return f.Sync() }
