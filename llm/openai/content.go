package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"nize/store"
)

// A message's content is a text, or a list of parts if it has pictures. The two protocols
// name the parts differently.

// parts returns the parts of a message in a protocol's own form.
type parts func(text string, addresses []string) any

// chatPart is a part of a Chat Completions message.
type chatPart struct {
	Type     string     `json:"type"`
	Text     string     `json:"text,omitempty"`
	ImageURL *chatImage `json:"image_url,omitempty"`
}

type chatImage struct {
	URL string `json:"url"`
}

func chatParts(text string, addresses []string) any {
	list := []chatPart{{Type: "text", Text: text}}
	for _, a := range addresses {
		list = append(list, chatPart{Type: "image_url", ImageURL: &chatImage{a}})
	}
	return list
}

// responsePart is a part of a message of the Responses API.
type responsePart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
}

func responseParts(text string, addresses []string) any {
	list := []responsePart{{Type: "input_text", Text: text}}
	for _, a := range addresses {
		list = append(list, responsePart{Type: "input_image", ImageURL: a})
	}
	return list
}

// content returns a message's text with its pictures.
func content(text string, pictures []store.File, as parts) (json.RawMessage, error) {
	var body any = text
	if len(pictures) > 0 {
		var addresses []string
		for _, f := range pictures {
			addresses = append(addresses, "data:"+f.Type+";base64,"+base64.StdEncoding.EncodeToString(f.Data))
		}
		body = as(text, addresses)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	return raw, nil
}

// pictures returns the files of a turn that the model should see.
func pictures(t store.Turn) []store.File {
	return slices.DeleteFunc(slices.Clone(t.Files), func(f store.File) bool { return f.Kind != store.ImageFile || len(f.Data) == 0 })
}
