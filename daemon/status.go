package daemon

import (
	"fmt"
	"time"

	"nize/store"
)

func sinceOf(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("%w time %q: use RFC 3339", store.ErrInvalid, text)
	}
	return t, nil
}
