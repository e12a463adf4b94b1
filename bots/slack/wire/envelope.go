package wire

import (
	"encoding/json"
	"fmt"

	"nize/bots/slack/incoming"
	"nize/store"
)

// Envelope is one frame of Socket Mode.
type Envelope struct {
	Type           string          `json:"type"`
	ID             string          `json:"envelope_id"`
	Payload        json.RawMessage `json:"payload"`
	Reason         string          `json:"reason"`
	Connections    int             `json:"num_connections"`
	ConnectionInfo struct {
		AppID string `json:"app_id"`
	} `json:"connection_info"`
}

func DecodeEnvelope(frame []byte) (e Envelope, err error) {
	if len(frame) > MaxFrame {
		return e, fmt.Errorf("%w frame: %d bytes", store.ErrInvalid, len(frame))
	}
	if err := json.Unmarshal(frame, &e); err != nil {
		return e, fmt.Errorf("%w frame: %w", store.ErrInvalid, err)
	}
	if e.ID != "" && !incoming.WordForm.MatchString(e.ID) {
		return e, fmt.Errorf("%w frame: envelope_id", store.ErrInvalid)
	}
	return e, nil
}

// MaxFrame limits the size of a frame: a press contains its message with all blocks.
const MaxFrame = 4 << 20
