package expose

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// FirstPage is the request for a list without its cursor: the SDK's own first page
// has all that it knows.
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

// CursorOf is where a request for a list goes on.
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

// A page of a list: some clients read no second one.
const (
	pageTools = 1000
	pageBytes = 4 << 20
)

// Page cuts a sorted list after the item whose key is the cursor, and at the
// bounds of a page.
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
