package expose

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// FirstPage returns the request for a list without its cursor: the SDK's own first page
// contains all that it has.
func FirstPage(req sdk.Request) sdk.Request {
	switch r := req.(type) {
	case *sdk.ListPromptsRequest:
		c := *r
		c.Params = &sdk.ListPromptsParams{}
		return &c
	case *sdk.ListResourcesRequest:
		c := *r
		c.Params = &sdk.ListResourcesParams{}
		return &c
	case *sdk.ListResourceTemplatesRequest:
		c := *r
		c.Params = &sdk.ListResourceTemplatesParams{}
		return &c
	}
	return req
}

// CursorOf returns the cursor of a request for a list.
func CursorOf(req sdk.Request) string {
	switch r := req.(type) {
	case *sdk.ListPromptsRequest:
		if r.Params != nil {
			return r.Params.Cursor
		}
	case *sdk.ListResourcesRequest:
		if r.Params != nil {
			return r.Params.Cursor
		}
	case *sdk.ListResourceTemplatesRequest:
		if r.Params != nil {
			return r.Params.Cursor
		}
	}
	return ""
}

// Limits of a page of a list. They are high, because some clients don't read a second page.
const (
	pageTools = 1000
	pageBytes = 4 << 20
)

// Page returns the part of a sorted list after the item whose key is the cursor, up to the
// limits of a page.
func Page[T any](all []T, after string, of func(T) (key string, size int)) (list []T, next string) {
	list = []T{}
	size := 0
	for _, item := range all {
		key, bytes := of(item)
		if after != "" && key <= after {
			continue
		}
		if size += bytes; len(list) == pageTools || len(list) > 0 && size > pageBytes {
			last, _ := of(list[len(list)-1])
			return list, last
		}
		list = append(list, item)
	}
	return list, ""
}
