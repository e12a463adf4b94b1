package filetext

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"
)

const (
	// childVar marks a process as the child that reads the file on its standard input. Its
	// value contains the file's type, the limit of its text, and the timeout.
	childVar = "NIZE_READ_FILE"

	// Exit codes of the child. Its output is then the reason, or the text.
	childUnreadable = 1
	childTooMuch    = 2

	childMemory = 512 << 20
	childStack  = 32 << 20
)

var errTooMuch = unreadable(fmt.Sprintf("it takes more than %d seconds or %d MiB of memory", int(childTime.Seconds()), childMemory>>20))

var childTime = 20 * time.Second // shorter in a test

// ChildMain runs the child and does not return if [Read] started this process.
func ChildMain() {
	var kind string
	var most int
	var long time.Duration
	if n, _ := fmt.Sscan(os.Getenv(childVar), &kind, &most, (*int64)(&long)); n < 3 {
		return
	}
	// It exits by itself, even if its parent is gone.
	time.AfterFunc(long, func() { os.Exit(childTooMuch) })
	debug.SetMaxStack(childStack)
	debug.SetMemoryLimit(childMemory / 2)
	go watchMemory()
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Exit(childTooMuch)
	}
	text, why := extract(kind, data, most)
	if why != "" {
		fmt.Print(why)
		os.Exit(childUnreadable)
	}
	if _, err := os.Stdout.WriteString(text); err != nil {
		os.Exit(childTooMuch)
	}
	os.Exit(0)
}

// watchMemory ends the child if it uses too much memory. A system limit would also count
// memory that Go only reserves.
func watchMemory() {
	taken := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	for range time.Tick(5 * time.Millisecond) {
		if metrics.Read(taken); taken[0].Value.Uint64() > childMemory {
			os.Exit(childTooMuch)
		}
	}
}

// readInChild reads a file in a child process, which has no environment.
func readInChild(ctx context.Context, kind string, data []byte, most int) (string, error) {
	if os.Getenv(childVar) != "" {
		return "", errors.New("the program does not call filetext.ChildMain first")
	}
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the program to read a file with: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, childTime+5*time.Second) // it exits by itself before
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = []string{childVar + "=" + fmt.Sprint(kind, " ", most, " ", int64(childTime))}
	cmd.Stdin = bytes.NewReader(data)
	out := &bounded{most: most + 1024}
	cmd.Stdout = out
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil && !out.full:
		return out.String(), nil
	case ctx.Err() != nil && context.Cause(ctx) != context.DeadlineExceeded:
		return "", ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() == childUnreadable:
		return "", unreadable(out.String())
	case errors.As(err, &exit), out.full: // too much memory, infinite recursion, or a fatal error
		return "", errTooMuch
	}
	return "", fmt.Errorf("reading a file in a child process: %w", err)
}

// bounded is a buffer with a size limit.
type bounded struct {
	bytes.Buffer
	most int
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		b.full = true
		return 0, io.ErrShortWrite
	}
	return b.Buffer.Write(p)
}

// extract reads the text of a file, or returns why it can't be read.
func extract(kind string, data []byte, most int) (text, why string) {
	defer func() {
		switch recover().(type) {
		case nil:
		case tooLong:
			text, why = "", fmt.Sprintf("it has more than %d bytes of text", most)
		default: // a library panicked
			text, why = "", "it is damaged"
		}
	}()
	out := &output{most: most}
	if kind == typePDF {
		why = readPDF(data, out)
	} else {
		why = readDOCX(data, out)
	}
	return strings.ReplaceAll(strings.ToValidUTF8(out.String(), "\ufffd"), "\x00", ""), why
}
