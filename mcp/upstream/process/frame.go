package process

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"nize/store"
)

// guardEnv is the environment variable that marks a process as the guard, and contains the
// descriptor of its socket.
const guardEnv = "NIZE_GUARD_FD"

// maxFrame is the maximum size of one message between daemon and guard: an argument list
// and an environment, for which the system itself has a lower limit.
const maxFrame = 4 << 20

// frame is a message between daemon and guard. A spawn is sent together with the three
// descriptors of the child.
//
//	daemon → guard   spawn, signal, limit
//	guard → daemon   ready, started, ended
type frame struct {
	Op   string   `json:"op"`
	ID   uint64   `json:"id"`
	Path string   `json:"path,omitempty"`
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
	Sig  int      `json:"sig,omitempty"`
	PID  int      `json:"pid,omitempty"`
	Mark mark     `json:"mark,omitempty"`

	Memory    store.Size `json:"memory,omitempty"`    // memory limit
	Processes int        `json:"processes,omitempty"` // limit of processes
	Kernel    bool       `json:"kernel,omitempty"`    // the kernel enforces the limits
	Over      bool       `json:"over,omitempty"`      // and killed it because it exceeded Memory
	Err       string     `json:"err,omitempty"`
}

// mark identifies the processes of one child. 0 means none.
type mark uint64

// encodeFrame returns a length of four bytes followed by JSON.
func encodeFrame(f frame) ([]byte, error) {
	body, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encoding a frame: %w", err)
	}
	if len(body) > maxFrame {
		return nil, fmt.Errorf("a command of %d bytes is too long", len(body))
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), nil
}

// readFrame reads the rest of a frame after its length.
func readFrame(r io.Reader, head [4]byte) (frame, error) {
	var f frame
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return f, fmt.Errorf("a frame of %d bytes", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return f, fmt.Errorf("reading a frame: %w", err)
	}
	if err := json.Unmarshal(body, &f); err != nil {
		return f, fmt.Errorf("decoding a frame: %w", err)
	}
	return f, nil
}
