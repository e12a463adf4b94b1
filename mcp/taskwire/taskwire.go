// Package taskwire has the wire messages of tasks, and of a server's questions during a call.
// The SDK has no tasks, so both directions use these forms: the gateway as a server, and the
// pool as a client. When the SDK has them, this is what it replaces.
//
// Tasks have two forms: the extension io.modelcontextprotocol/tasks of 2026-07-28
// (SEP-2663), and the core protocol of 2025-11-25, which ended with it.
package taskwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Extension is the name of tasks in the capabilities of clients and servers.
const Extension = "io.modelcontextprotocol/tasks"

// The methods.
const (
	MethodGet    = "tasks/get"
	MethodUpdate = "tasks/update" // of the extension
	MethodCancel = "tasks/cancel"
	MethodResult = "tasks/result" // of 2025-11-25
	MethodList   = "tasks/list"   // of 2025-11-25

	// Notification tells of a task that changed: the first is the extension's, the
	// second that of 2025-11-25.
	Notification       = "notifications/tasks"
	LegacyNotification = "notifications/tasks/status"
)

// The states of a task.
const (
	Working       = "working"
	InputRequired = "input_required"
	Completed     = "completed"
	Failed        = "failed"
	Cancelled     = "cancelled"
)

// ErrStopping is why the wait for a task ends that the next instance of nized goes on
// with.
var ErrStopping = errors.New("nized is stopping; the task goes on")

// Ended reports whether a task in that state changes no more.
func Ended(status string) bool {
	return status == Completed || status == Failed || status == Cancelled
}

// Input is a request that a server makes of its client within a result.
type Input struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Form is the part of a task that both forms have.
type Form struct {
	ID      string `json:"taskId"`
	Status  string `json:"status"`
	Message string `json:"statusMessage,omitempty"`
	Created string `json:"createdAt"`
	Updated string `json:"lastUpdatedAt"`
}

// Stamp is a time as tasks have it.
func Stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// Task is a task in the form of the extension.
type Task struct {
	ResultType string `json:"resultType,omitempty"`
	Form
	TTL    int64            `json:"ttlMs"`
	Poll   int64            `json:"pollIntervalMs"`
	Inputs map[string]Input `json:"inputRequests,omitempty"`
	Result json.RawMessage  `json:"result,omitempty"`
	Error  *Error           `json:"error,omitempty"`
}

// Error is the error of a task that failed.
type Error struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

// Legacy is a task in the form of 2025-11-25.
type Legacy struct {
	Form
	TTL  int64 `json:"ttl"`
	Poll int64 `json:"pollInterval"`
}

// Result is what a server answered to a call.
type Result struct {
	Task   string           // the id of the task that it made of the call, "" for none
	Legacy bool             // the task has the form of 2025-11-25
	Poll   time.Duration    // how long it wants its client to wait between polls; 0 if it doesn't say
	Inputs map[string]Input // what it wants answered, and then the call again
	State  string           // what goes back with the answers
}

// ReadResult tells a result apart from a task, and from a wish for input. Members that
// are not to the letter are an error, since the call may go on at the server.
func ReadResult(raw json.RawMessage) (Result, error) {
	if !bytes.Contains(raw, []byte(`"task`)) && !bytes.Contains(raw, []byte(`"input_required"`)) {
		return Result{}, nil // nearly all
	}
	var got struct {
		Type   string           `json:"resultType"`
		ID     string           `json:"taskId"`
		Poll   float64          `json:"pollIntervalMs"`
		Inputs map[string]Input `json:"inputRequests"`
		State  string           `json:"requestState"`
		Legacy *struct {
			ID   string  `json:"taskId"`
			Poll float64 `json:"pollInterval"`
		} `json:"task"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		var typed struct {
			Type any `json:"resultType"`
		}
		if json.Unmarshal(raw, &typed) == nil && (typed.Type == "task" || typed.Type == InputRequired) {
			return Result{}, fmt.Errorf("a %v that can't be read: %w", typed.Type, err)
		}
		return Result{}, nil
	}
	switch {
	case got.Type == "task" && got.ID == "":
		return Result{}, fmt.Errorf("a task without an id")
	case got.Type == "task":
		return Result{Task: got.ID, Poll: millis(got.Poll)}, nil
	case got.Type == InputRequired:
		return Result{Inputs: got.Inputs, State: got.State}, nil
	case got.Type == "" && got.Legacy != nil && got.Legacy.ID != "" && got.Content == nil:
		return Result{Task: got.Legacy.ID, Legacy: true, Poll: millis(got.Legacy.Poll)}, nil
	}
	return Result{}, nil
}

// State is what a server says of a task.
type State struct {
	Status  string
	Message string
	Poll    time.Duration // 0 if it doesn't say
	Inputs  map[string]Input
	Result  json.RawMessage // of a completed one, in the form of the extension
	Code    int64           // of a failed one
	Problem string
}

// ReadState reads the answer to tasks/get, in either form.
func ReadState(raw json.RawMessage) (State, error) {
	var got struct {
		Status  string           `json:"status"`
		Message string           `json:"statusMessage"`
		Poll    float64          `json:"pollIntervalMs"`
		Legacy  float64          `json:"pollInterval"`
		Inputs  map[string]Input `json:"inputRequests"`
		Result  json.RawMessage  `json:"result"`
		Error   struct {
			Code    float64 `json:"code"`
			Message string  `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return State{}, fmt.Errorf("the state of its task can't be read: %w", err)
	}
	switch got.Status {
	case Working, InputRequired, Completed, Failed, Cancelled:
	default:
		return State{}, fmt.Errorf("its task has the unknown status %q", clip(got.Status))
	}
	return State{
		Status: got.Status, Message: got.Message, Poll: max(millis(got.Poll), millis(got.Legacy)),
		Inputs: got.Inputs, Result: got.Result, Code: int64(got.Error.Code), Problem: got.Error.Message,
	}, nil
}

// millis is a number of milliseconds that a server sent, an hour at most.
func millis(n float64) time.Duration {
	if !(n > 0) {
		return 0
	}
	return time.Duration(min(n, 3600_000)) * time.Millisecond
}

func clip(s string) string { return s[:min(len(s), 100)] }
