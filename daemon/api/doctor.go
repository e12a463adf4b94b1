package api

// Level is how bad a finding is.
type Level string

const (
	LevelOK      Level = "ok"
	LevelWarning Level = "warning" // works, but somebody should look
	LevelProblem Level = "problem" // does not work, or is not safe
)

// Finding is what one check found.
type Finding struct {
	Check   string `json:"check"`             // the rule's name: keys, disk, servers …
	Subject string `json:"subject,omitempty"` // a server's, token's, file's name
	Level   Level  `json:"level"`
	Text    string `json:"text"`
	Cure    string `json:"cure,omitempty"` // the exact command
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
