package daemon_test

import (
	"os/exec"
	"syscall"
)

// endWithTest ends the process of a command also if the tests end without their cleanup, as
// they do when they time out.
func endWithTest(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
