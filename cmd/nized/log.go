package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// maxLog is how long the log of a background job grows before it begins again;
// the one before it is kept.
const maxLog = 8 << 20

// jobLog writes the log to standard error, and where that is a terminal, in
// which nized was put into the background once it is ready, to a file: whoever
// works there, in a chat perhaps, has the terminal to themselves. A job that
// comes back to the foreground writes there again.
type jobLog struct {
	out        *os.File
	path       string
	background func() bool

	mu    sync.Mutex
	ready bool
	told  bool     // where the log goes on
	file  *os.File // nil until it is needed
	size  int64
}

// newJobLog is for the daemon of that data directory.
func newJobLog(out *os.File, dataDir string) *jobLog {
	fd := int(out.Fd())
	return &jobLog{out: out, path: filepath.Join(dataDir, "nized.log"), background: func() bool {
		if !term.IsTerminal(fd) {
			return false
		}
		front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err == nil && front != unix.Getpgrp()
	}}
}

// Ready says that nized has told that it is ready, which stands on the terminal.
func (l *jobLog) Ready() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready = true
	if l.background() {
		l.tellLocked()
	}
}

func (l *jobLog) tellLocked() {
	if !l.told {
		l.told = true
		fmt.Fprintf(l.out, "nized runs in the background; its log is in %s\n", l.path)
	}
}

func (l *jobLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ready || !l.background() {
		return l.out.Write(p)
	}
	l.tellLocked()
	if err := l.openLocked(len(p)); err != nil {
		return l.out.Write(p) // better there than nowhere
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

// openLocked makes sure of a file that has room for so many bytes.
func (l *jobLog) openLocked(more int) error {
	if l.file != nil && l.size+int64(more) > maxLog {
		_ = l.file.Close() // what was written is there
		l.file = nil
	}
	if l.file != nil {
		return nil
	}
	if info, err := os.Stat(l.path); err == nil && info.Size()+int64(more) > maxLog {
		if err := os.Rename(l.path, l.path+".1"); err != nil {
			return fmt.Errorf("keeping the old log: %w", err)
		}
	}
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	l.file, l.size = f, 0
	if info, err := f.Stat(); err == nil {
		l.size = info.Size()
	}
	return nil
}
