package api

import (
	"time"

	"nize/store"
)

// GetStatus asks how the daemon is.
var GetStatus = Op[Empty, Status]{"GET", "/v1/status", false, "the daemon's state"}

// Status is the daemon's state, for operators and tests.
type Status struct {
	Version   string       `json:"version"`
	PID       int          `json:"pid"`
	Started   time.Time    `json:"started"`
	DataDir   string       `json:"data_dir"`
	Socket    string       `json:"socket"`
	Listen    string       `json:"listen"` // the HTTP listener's real address
	PublicURL string       `json:"public_url,omitempty"`
	TLS       bool         `json:"tls,omitempty"`    // on the HTTP listener
	Config    string       `json:"config,omitempty"` // the configuration file, if there is one
	You       store.Caller `json:"you"`              // who asks
	Model     string       `json:"model,omitempty"`  // the default one, or offline
	Servers   []Health     `json:"servers"`
	Bots      []BotState   `json:"bots"`
	Tools     int          `json:"tools"`
	Pending   int          `json:"pending_approvals"`
	Running   int          `json:"running_calls"`
	Sessions  int          `json:"sessions"` // of MCP clients, and connections of their own
	// SessionsEnded counts those that were ended since the start to make room for others.
	SessionsEnded int              `json:"sessions_ended"`
	Requests      int              `json:"mcp_requests"` // of MCP clients, under way
	Connections   ConnectionStatus `json:"connections"`
	Queues        []Queue          `json:"queues"`
	Incidents     int              `json:"incidents_open"` // those that the caller may know of
	Uptime        float64          `json:"uptime_seconds"`
	Database      DatabaseStatus   `json:"database"`
	Replicas      []Replica        `json:"replicas,omitempty"` // where several may share the database; for admins
	Process       ProcessStatus    `json:"process"`
	Warnings      []string         `json:"warnings,omitempty"` // one sentence each, with what to do
}

// Replica is one of several nized that share a database.
type Replica struct {
	Address string `json:"address"` // at which the others reach it, or the name of its machine
	Version string `json:"version"`
	Works   bool   `json:"works"` // the others stand by
	// ClockApart says that its clock is too far from the database's to take over.
	ClockApart bool      `json:"clock_apart,omitempty"`
	Since      time.Time `json:"since"` // it has been connected
	Seen       time.Time `json:"seen"`  // when the database heard it last
}

// BotState is how a chat platform is.
type BotState struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`
	LastError string    `json:"last_error,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}

// ConnectionStatus is what is open at the HTTP listener.
type ConnectionStatus struct {
	Open                int `json:"open"`
	Unauthenticated     int `json:"unauthenticated"` // of them, those on which nobody is signed in
	Most                int `json:"most"`
	MostUnauthenticated int `json:"most_unauthenticated"`
	Ended               int `json:"ended"` // since the start, to make room for others
	Refused             int `json:"refused"`
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
	Engine     string    `json:"engine"`           // bbolt or PostgreSQL
	Server     string    `json:"server,omitempty"` // that has it, where it is no file: host and database
	Version    string    `json:"version,omitempty"`
	Reachable  bool      `json:"reachable"`
	RoundTrip  float64   `json:"round_trip_ms,omitempty"`
	StandBy    int       `json:"stand_by,omitempty"` // how many more nized wait to work on it
	SizeBytes  int64     `json:"size_bytes"`
	LastBackup time.Time `json:"last_backup,omitzero"` // the newest scheduled one, or one of the last 48 hours that was asked for
}

// Level is how bad a finding is.
type Level string

const (
	LevelOK      Level = "ok"
	LevelWarning Level = "warning" // works, but somebody should look
	LevelProblem Level = "problem" // does not work, or is not safe
)

// Finding is what one check found.
type Finding struct {
	Check   string     `json:"check"`             // the rule's name: keys, disk, servers …
	Subject string     `json:"subject,omitempty"` // a server's, token's, file's name
	Level   Level      `json:"level"`
	Text    store.Text `json:"text"`
	Cure    string     `json:"cure,omitempty"` // the exact command
}

// Diagnosis is the whole of what nizectl doctor found.
type Diagnosis struct {
	OK       bool      `json:"ok"`     // there is no problem
	Daemon   bool      `json:"daemon"` // false: nobody answers, and only files were looked at
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
}

// Diagnose counts.
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

// Doctor asks the daemon to look itself over; online also asks each provider.
var Doctor = Op[DoctorRequest, Diagnosis]{"GET", "/v1/doctor", true, "look the daemon over"}

// DoctorRequest says how thoroughly.
type DoctorRequest struct {
	Online bool `query:"online" json:"-"`
	// Client is the client's version, which each request says.
	Client string `header:"Nize-Version" json:"-"`
}
