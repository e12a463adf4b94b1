package api

import (
	"time"

	"nize/store"
)

// GetStatus returns the daemon's state.
var GetStatus = Op[Empty, Status]{"GET", "/v1/status", false, "the daemon's state"}

// Status is the daemon's state, for operators and tests.
type Status struct {
	Version   string       `json:"version"`
	PID       int          `json:"pid"`
	Started   time.Time    `json:"started"`
	DataDir   string       `json:"data_dir"`
	Socket    string       `json:"socket"`
	Listen    string       `json:"listen"` // the HTTP listener's actual address
	PublicURL string       `json:"public_url,omitempty"`
	TLS       bool         `json:"tls,omitempty"`    // on the HTTP listener
	Config    string       `json:"config,omitempty"` // the configuration file, if any
	You       store.Caller `json:"you"`              // the caller
	Model     string       `json:"model,omitempty"`  // the default one, or offline
	Servers   []Health     `json:"servers"`
	Bots      []BotState   `json:"bots"`
	Tools     int          `json:"tools"`
	Pending   int          `json:"pending_approvals"`
	Running   int          `json:"running_calls"`
	Sessions  int          `json:"sessions"` // of MCP clients, including connections without a session
	// SessionsEnded counts sessions that were closed since the start to make room for
	// others.
	SessionsEnded int              `json:"sessions_ended"`
	Requests      int              `json:"mcp_requests"` // of MCP clients, in progress
	Connections   ConnectionStatus `json:"connections"`
	Queues        []Queue          `json:"queues"`
	Incidents     int              `json:"incidents_open"` // those that the caller may see
	Uptime        float64          `json:"uptime_seconds"`
	Database      DatabaseStatus   `json:"database"`
	Replicas      []Replica        `json:"replicas,omitempty"` // if several may share the database; for admins
	Process       ProcessStatus    `json:"process"`
	Warnings      []string         `json:"warnings,omitempty"` // one sentence each, with a remedy
}

// Replica is one of several nized nodes that share a database.
type Replica struct {
	Address string `json:"address"` // address for the other nodes, or its machine's name
	Version string `json:"version"`
	Works   bool   `json:"works"` // the active node; the others are standbys
	// ClockApart is true if the node's clock differs too much from the database's for it to
	// take over.
	ClockApart bool      `json:"clock_apart,omitempty"`
	Since      time.Time `json:"since"` // start of its connection
	Seen       time.Time `json:"seen"`  // its last heartbeat in the database
}

// BotState is the state of a chat platform's bot.
type BotState struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`
	LastError string    `json:"last_error,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}

// ConnectionStatus counts connections of the HTTP listener.
type ConnectionStatus struct {
	Open                int `json:"open"`
	Unauthenticated     int `json:"unauthenticated"` // those without a signed-in user
	Most                int `json:"most"`
	MostUnauthenticated int `json:"most_unauthenticated"`
	Ended               int `json:"ended"` // closed since the start to make room for others
	Refused             int `json:"refused"`
}

// Queue is pending work inside the daemon.
type Queue struct {
	Name  string `json:"name"`
	Depth int    `json:"depth"`
}

// ProcessStatus is the process's resource usage.
type ProcessStatus struct {
	Goroutines int    `json:"goroutines"`
	OpenFiles  int    `json:"open_files"`
	Children   int    `json:"children"`
	HeapBytes  uint64 `json:"heap_bytes"`
	// ResidentBytes and the fields below are set on Linux only.
	ResidentBytes  uint64         `json:"resident_bytes"`
	ChildProcesses []ChildProcess `json:"child_processes"` // servers, and the process that guards them
}

// ChildProcess is one child process of the daemon.
type ChildProcess struct {
	PID           int    `json:"pid"`
	Name          string `json:"name"`             // the kernel's name of its program
	Server        string `json:"server,omitempty"` // the server it runs
	ResidentBytes uint64 `json:"resident_bytes"`
}

// DatabaseStatus is the state of the database.
type DatabaseStatus struct {
	Engine     string    `json:"engine"`           // bbolt or PostgreSQL
	Server     string    `json:"server,omitempty"` // host and database, if it is not a file
	Version    string    `json:"version,omitempty"`
	Reachable  bool      `json:"reachable"`
	RoundTrip  float64   `json:"round_trip_ms,omitempty"`
	StandBy    int       `json:"stand_by,omitempty"` // number of standby nodes
	SizeBytes  int64     `json:"size_bytes"`
	LastBackup time.Time `json:"last_backup,omitzero"` // the newest scheduled one, or one requested in the last 48 hours
}

// Level is the severity of a finding.
type Level string

const (
	LevelOK      Level = "ok"
	LevelWarning Level = "warning" // works, but needs attention
	LevelProblem Level = "problem" // does not work, or is not safe
)

// Finding is the result of one check.
type Finding struct {
	Check   string     `json:"check"`             // the check's name: keys, disk, servers …
	Subject string     `json:"subject,omitempty"` // a server's, token's, file's name
	Level   Level      `json:"level"`
	Text    store.Text `json:"text"`
	Cure    string     `json:"cure,omitempty"` // the exact command
}

// Diagnosis is the complete result of nizectl doctor.
type Diagnosis struct {
	OK       bool      `json:"ok"`     // there is no problem
	Daemon   bool      `json:"daemon"` // if false, no daemon responded and only files were checked
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
}

// Diagnose counts the findings by level.
func Diagnose(daemon bool, findings []Finding) Diagnosis {
	d := Diagnosis{Daemon: daemon, Findings: findings}
	for _, f := range findings {
		switch f.Level {
		case LevelProblem:
			d.Problems++
		case LevelWarning:
			d.Warnings++
		}
	}
	d.OK = d.Problems == 0
	return d
}

// Doctor runs the daemon's self-checks; with Online it also queries each provider.
var Doctor = Op[DoctorRequest, Diagnosis]{"GET", "/v1/doctor", true, "run the daemon's self-checks"}

// DoctorRequest selects how thoroughly to check.
type DoctorRequest struct {
	Online bool `query:"online" json:"-"`
	// Client is the client's version, which every request carries.
	Client string `header:"Nize-Version" json:"-"`
}
