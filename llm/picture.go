package llm

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"nize/store"
)

const (
	// maxPictures is how many pictures one request contains, the newest ones.
	maxPictures = 8
	// maxPictureBytes limits their total size: services refuse larger requests.
	maxPictureBytes = 12 << 20
)

// Pictures is the part of [store.Files] that the router reads.
type Pictures interface {
	GetFile(ctx context.Context, thread, id string) ([]byte, error)
}

// addPictures adds the newest pictures of the conversation to a copy of the request if the
// model accepts them, and returns how many. A picture that is no longer stored is only
// named.
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
			data, err := r.picture(ctx, turns[i].Thread, f)
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

// picture returns the content of a picture from a message or a call's result.
func (r *Router) picture(ctx context.Context, thread string, f *store.File) ([]byte, error) {
	id, ok := strings.CutPrefix(f.ID, ofResult)
	if !ok {
		return r.Pictures.GetFile(ctx, thread, f.ID)
	}
	if r.Results == nil {
		return nil, store.ErrNotFound
	}
	call, place, _ := strings.Cut(id, "/")
	c, err := r.Results(ctx, call)
	if err != nil {
		return nil, err
	}
	list := picturesIn(c.Result)
	n, err := strconv.Atoi(place)
	if err != nil || n < 0 || n >= len(list) || c.Thread != thread {
		return nil, store.ErrNotFound
	}
	data, err := base64.StdEncoding.DecodeString(list[n].Data)
	if err != nil || http.DetectContentType(data) != f.Type {
		return nil, store.ErrNotFound // a service would refuse the whole request because of it
	}
	return data, nil
}

// ofResult is the prefix of the ids of pictures in results, whose bytes are stored with the
// call.
const ofResult = "result/"

type resultPicture struct {
	Type string `json:"type"`
	MIME string `json:"mimeType"`
	Data string `json:"data"`
}

// picturesIn returns the pictures of a result that a model may get.
func picturesIn(r *store.Result) []resultPicture {
	var parsed struct {
		Content []resultPicture `json:"content"`
	}
	if r == nil || r.Error != nil || json.Unmarshal(r.Passed(), &parsed) != nil {
		return nil
	}
	return slices.DeleteFunc(parsed.Content, func(p resultPicture) bool {
		return p.Type != "image" || p.Data == "" || !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, p.MIME)
	})
}

// ResultPictures lists the pictures in a call's result, for [store.Turn.Files] of the turn
// that has the result.
func ResultPictures(c store.Call) (files []store.File) {
	if c.State != store.Done {
		return nil
	}
	for i, p := range picturesIn(c.Result) {
		if i == maxPictures {
			break
		}
		files = append(files, store.File{ID: ofResult + c.ID + "/" + strconv.Itoa(i), Name: fmt.Sprintf("picture %d", i+1), Kind: store.ImageFile, Type: p.MIME, Size: int64(base64.StdEncoding.DecodedLen(len(p.Data)))})
	}
	return files
}

// ImageModels returns [Router.TakesImages] according to the setting models.images.
func ImageModels(c store.Config) func(model string) bool {
	return func(model string) bool {
		for _, pattern := range store.GetList(c, "", "models.images") {
			head, open := strings.CutSuffix(pattern, "*")
			if model == pattern || open && strings.HasPrefix(model, head) {
				return true
			}
		}
		return false
	}
}

// CheckImages returns an error if models.images can't have that value.
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

// isRequestFault reports whether the provider rejected the request itself.
func isRequestFault(err error) bool {
	var pe *ProviderError
	return errors.As(err, &pe) && pe.Fault == FaultRequest
}
