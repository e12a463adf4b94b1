package api

import (
	"time"

	"nize/store"
)

// GetStatus asks how the daemon is.
var GetStatus = Op[Empty, Status]{"GET", "/v1/status", false, "the daemon's state"}

// Status is the daemon's state, for operators and tests.
type Status struct {
	Version   string         `json:"version"`
	PID       int            `json:"pid"`
	Started   time.Time      `json:"started"`
	DataDir   string         `json:"data_dir"`
	Socket    string         `json:"socket"`
	Listen    string         `json:"listen"` // the HTTP listener's real address
	PublicURL string         `json:"public_url,omitempty"`
	TLS       bool           `json:"tls,omitempty"`    // on the HTTP listener
	Config    string         `json:"config,omitempty"` // the configuration file, if there is one
	You       store.Caller   `json:"you"`              // who asks
	Model     string         `json:"model,omitempty"`  // the default one, or offline
	Servers   []Health       `json:"servers"`
	Bots      []BotState     `json:"bots"`
	Tools     int            `json:"tools"`
	Pending   int            `json:"pending_approvals"`
	Running   int            `json:"running_calls"`
	Sessions  int            `json:"sessions"` // of MCP clients
	Queues    []Queue        `json:"queues"`
	Incidents int            `json:"incidents_open"` // those that the caller may know of
	Uptime    float64        `json:"uptime_seconds"`
	Database  DatabaseStatus `json:"database"`
	Process   ProcessStatus  `json:"process"`
	Warnings  []string       `json:"warnings,omitempty"` // one sentence each, with what to do
}

// BotState is how a chat platform is.
type BotState struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`
	LastError string    `json:"last_error,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}

// Queue is work that waits inside the daemon.
type Queue struct {
	Name  string `json:"name"`
	Depth int    `json:"depth"`
}

// ProcessStatus is what the process holds.
type ProcessStatus struct {
	Goroutines int    `json:"goroutines"`
	OpenFiles  int    `json:"open_files"`
	Children   int    `json:"children"`
	HeapBytes  uint64 `json:"heap_bytes"`
	// ResidentBytes and what follows are for Linux.
	ResidentBytes  uint64         `json:"resident_bytes"`
	ChildProcesses []ChildProcess `json:"child_processes"` // of servers, and the guard of them
}

// ChildProcess is one process below the daemon.
type ChildProcess struct {
	PID           int    `json:"pid"`
	Name          string `json:"name"`             // of its program, as the kernel has it
	Server        string `json:"server,omitempty"` // whose process it is
	ResidentBytes uint64 `json:"resident_bytes"`
}

// DatabaseStatus is how the database is.
type DatabaseStatus struct {
	SizeBytes  int64     `json:"size_bytes"`
	LastBackup time.Time `json:"last_backup,omitzero"` // the newest scheduled one, or one of the last 48 hours that was asked for
}
