package journal

import (
	"errors"
	"os"
	"syscall"
)

// flush is a sync without the file's times, since its size never changes.
func flush(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
