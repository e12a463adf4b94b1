package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain lets the tests start this nized itself.
func TestMain(m *testing.M) {
	if os.Getenv("NIZED_TEST_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// pty opens a pseudo terminal: the person's end, and the program's.
func pty(t *testing.T) (person, program *os.File) {
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, program
}

// TestSetupOnATerminal: three answers at a terminal lead to a link, and the nized
// that setup started ends by Ctrl-C; Ctrl-C at a question leaves nothing behind.
func TestSetupOnATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts nized")
	}
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // a model service that never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deaf.Close() })
	silent := "http://" + deaf.Addr().String() + "/v1"
	for name, test := range map[string]struct {
		play []string // what to wait for, and what is typed then, in turn
		code int
		made bool
	}{
		"answered": {[]string{`1\..*\n +\[\S+\] `, "mia\r", `2\..*\n(.*\n)*.*\[none\] `, "\r", `3\..*\n.*\n +\[example\] `, "none\r",
			`admin +mia\r\nmodel +none(.*\n)*.*http://127.0.0.1:\d+/login#\S{43}`, "\x03"}, 0, true},
		"interrupted at the service": {[]string{`1\..*\n +\[\S+\] `, "mia\r", `2\..*\n(.*\n)*.*\[none\] `, silent + "\r", `the key of own`, "\r", `3\..*\n.*\n +\[example\] `, "none\r",
			`Asking own for its models…`, "\x03", `interrupted; admin mia stays; run it again`, ""}, 130, true},
		"interrupted":          {[]string{`1\..*\n +\[\S+\] `, "mia\r", `2\..*\n(.*\n)*.*\[none\] `, "\x03"}, 130, false},
		"interrupted at a key": {[]string{`1\..*\n +\[\S+\] `, "mia\r", `2\..*\n(.*\n)*.*\[none\] `, "openai\r", `the key of openai \(not shown\): `, "\x03"}, 130, false},
		"ended":                {[]string{`1\..*\n +\[\S+\] `, "\x04"}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "d")
			person, program := pty(t)
			cmd := exec.Command(os.Args[0], "setup")
			cmd.Env = append(os.Environ(), "NIZED_TEST_MAIN=1", "NIZE_DATA_DIR="+data, "NIZE_LISTEN=127.0.0.1:0", "NIZE_CONFIG=", "NIZE_SOCKET=", "OPENAI_API_KEY=")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			var shown strings.Builder
			for i := 0; i < len(test.play); i += 2 {
				want := regexp.MustCompile(test.play[i])
				buf := make([]byte, 4096)
				for !want.MatchString(shown.String()) {
					n, err := person.Read(buf)
					if err != nil {
						t.Fatalf("%v after\n%s", err, &shown)
					}
					shown.Write(buf[:n])
				}
				if _, err := fmt.Fprint(person, test.play[i+1]); err != nil {
					t.Fatal(err)
				}
			}
			go func() { // so that it never waits for a reader
				buf := make([]byte, 4096)
				for {
					if _, err := person.Read(buf); err != nil {
						return
					}
				}
			}()
			_ = cmd.Wait() // its code is looked at
			if got := cmd.ProcessState.ExitCode(); got != test.code {
				t.Errorf("exit code %d, want %d, after\n%s", got, test.code, &shown)
			}
			lflag, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
			if err != nil || lflag.Lflag&unix.ECHO == 0 {
				t.Errorf("the terminal has no echo: %v", err)
			}
			program.Close()
			if _, err := os.Stat(filepath.Join(data, "nize.db")); (err == nil) != test.made {
				t.Errorf("the database: %v", err)
			}
		})
	}
}
