package slack

import (
	"encoding/json"
	"fmt"

	"nize/store"
)

// envelope is one frame of Socket Mode.
type envelope struct {
	Type           string          `json:"type"`
	ID             string          `json:"envelope_id"`
	Payload        json.RawMessage `json:"payload"`
	Reason         string          `json:"reason"`
	Connections    int             `json:"num_connections"`
	ConnectionInfo struct {
		AppID string `json:"app_id"`
	} `json:"connection_info"`
}

func decodeEnvelope(frame []byte) (e envelope, err error) {
	if len(frame) > maxFrame {
		return e, fmt.Errorf("%w frame: %d bytes", store.ErrInvalid, len(frame))
	}
	if err := json.Unmarshal(frame, &e); err != nil {
		return e, fmt.Errorf("%w frame: %w", store.ErrInvalid, err)
	}
	if e.ID != "" && !wordForm.MatchString(e.ID) {
		return e, fmt.Errorf("%w frame: envelope_id", store.ErrInvalid)
	}
	return e, nil
}

// maxFrame bounds one frame: a press carries its message with all blocks.
const maxFrame = 4 << 20
