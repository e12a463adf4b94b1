package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/store"
)

const (
	// maxPictures is how many pictures one request shows, the newest.
	maxPictures = 8
	// maxPictureBytes bounds their bytes together: services refuse larger requests.
	maxPictureBytes = 12 << 20
)

// Pictures is the part of [store.Files] that the router reads.
type Pictures interface {
	GetFile(ctx context.Context, thread, id string) ([]byte, error)
}

// addPictures puts the newest pictures of the conversation into a copy of the
// request where the model takes them, and says how many. One that is not kept
// any more is named only.
func (r *Router) addPictures(ctx context.Context, t Target, req Request) (Request, int) {
	if r.Pictures == nil || r.TakesImages == nil || !r.TakesImages(t.Name()) {
		return req, 0
	}
	count, size := 0, 0
	turns := slices.Clone(req.Turns)
	for i := len(turns) - 1; i >= 0; i-- {
		if !slices.ContainsFunc(turns[i].Files, func(f store.File) bool { return f.Kind == store.ImageFile }) {
			continue
		}
		turns[i].Files = slices.Clone(turns[i].Files)
		for j := range turns[i].Files {
			f := &turns[i].Files[j]
			if f.Kind != store.ImageFile || count == maxPictures || size+int(f.Size) > maxPictureBytes {
				continue
			}
			data, err := r.Pictures.GetFile(ctx, turns[i].Thread, f.ID)
			if err != nil {
				if !errors.Is(err, store.ErrNotFound) {
					r.log().Error("reading a picture", "thread", turns[i].Thread, "file", f.ID, "error", err)
				}
				continue
			}
			f.Data, count, size = data, count+1, size+len(data)
		}
	}
	req.Turns = turns
	return req, count
}

// ImageModels answers [Router.TakesImages] by the setting models.images.
func ImageModels(c store.Config) func(findTarget string) bool {
	return func(findTarget string) bool {
		for _, pattern := range store.GetList(c, "", "models.images") {
			head, open := strings.CutSuffix(pattern, "*")
			if findTarget == pattern || open && strings.HasPrefix(findTarget, head) {
				return true
			}
		}
		return false
	}
}

// CheckImages refuses what can't be a value of models.images.
func CheckImages(value string) error {
	for pattern := range strings.SplitSeq(value, ",") {
		pattern = strings.TrimSpace(pattern)
		head, _ := strings.CutSuffix(pattern, "*")
		if pattern == "" || pattern == "none" || pattern == "*" {
			continue
		}
		if provider, model, ok := strings.Cut(head, "/"); !ok || provider == "" || model == "" && head == pattern || strings.Contains(head, "*") {
			return fmt.Errorf("%w models.images: %q is not a model: write provider/model, such as openai/gpt-5*, or none", store.ErrInvalid, pattern)
		}
	}
	return nil
}

// isRefused says whether a service did not accept what was asked of it.
func isRefused(err error) bool {
	var pe *ProviderError
	return errors.As(err, &pe) && pe.Fault == FaultRequest
}
