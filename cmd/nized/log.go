package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// maxLog is the maximum size of a background job's log before a new one begins; the
// previous one is kept.
const maxLog = 8 << 20

// jobLog writes the log to standard error. If that is a terminal and nized was put into the
// background once it was ready, it writes to a file instead, so that the log doesn't
// disturb what runs on the terminal, such as a chat. A job that returns to the foreground
// writes to the terminal again.
type jobLog struct {
	out        *os.File
	path       string
	background func() bool

	mu    sync.Mutex
	ready bool
	told  bool     // where the log continues
	file  *os.File // nil until it is needed
	size  int64
}

// newJobLog returns the log for the daemon of that data directory.
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

// Ready is called when nized has reported on the terminal that it is ready.
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
		return l.out.Write(p) // rather there than nowhere
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

// openLocked opens a file with space for that many bytes.
func (l *jobLog) openLocked(more int) error {
	if l.file != nil && l.size+int64(more) > maxLog {
		_ = l.file.Close() // its content is already written
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
