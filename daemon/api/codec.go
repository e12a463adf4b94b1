package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"nize/store"
)

// The codec of requests. A field's tag decides where it is encoded: `path`, `query`,
// `header`, or none for the JSON body. Fields of path and query are strings, bools ("1" is
// true), whole numbers, floats or times (RFC 3339); the query omits zero values.

// plan lists where the fields of a request type are encoded.
type plan struct {
	path, query, header []part
	body                bool // there are fields in the JSON body
}

type part struct {
	name  string
	index []int
}

var plans sync.Map // of *plan by reflect.Type

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := new(plan)
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("path"); name != "" {
			p.path = append(p.path, part{name, f.Index})
		} else if name := f.Tag.Get("query"); name != "" {
			p.query = append(p.query, part{name, f.Index})
		} else if name := f.Tag.Get("header"); name != "" {
			p.header = append(p.header, part{name, f.Index})
		} else if f.IsExported() && f.Tag.Get("json") != "-" {
			p.body = true
		}
	}
	plans.Store(t, p)
	return p
}

// Encode returns the path for a pattern of http.ServeMux, the query, and the JSON body (nil
// for none) of a request, which is a struct.
func Encode(pattern string, req any) (path string, query url.Values, body []byte, err error) {
	v := reflect.ValueOf(req)
	p := planOf(v.Type())
	path = pattern
	for _, f := range p.path {
		path = strings.Replace(path, "{"+f.name+"}", url.PathEscape(text(v.FieldByIndex(f.index))), 1)
	}
	query = url.Values{}
	for _, f := range p.query {
		if field := v.FieldByIndex(f.index); !field.IsZero() {
			query.Set(f.name, text(field))
		}
	}
	if p.body {
		if body, err = json.Marshal(req); err != nil {
			err = fmt.Errorf("encoding %s: %w", pattern, err)
		}
	}
	return path, query, body, err
}

// Decode reads a request into the struct that req points to. It returns [store.ErrInvalid]
// if it can't read a field; strict also rejects members of the body that the struct doesn't
// have.
func Decode(req any, path func(name string) string, query url.Values, body []byte, strict bool) error {
	v := reflect.ValueOf(req).Elem()
	p := planOf(v.Type())
	if p.body && len(body) > 0 {
		if err := decodeBody(req, body, strict); err != nil {
			return err
		}
	}
	for _, f := range p.path {
		if err := parse(v.FieldByIndex(f.index), f.name, path(f.name)); err != nil {
			return err
		}
	}
	for _, f := range p.query {
		if err := parse(v.FieldByIndex(f.index), f.name, query.Get(f.name)); err != nil {
			return err
		}
	}
	return nil
}

// DecodeHeader sets the fields of the struct that req points to which have a header tag.
// Encode omits these: the client sends its headers itself.
func DecodeHeader(req any, header func(name string) string) {
	v := reflect.ValueOf(req).Elem()
	for _, f := range planOf(v.Type()).header {
		v.FieldByIndex(f.index).SetString(header(f.name))
	}
}

func decodeBody(req any, body []byte, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(req)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = errors.New("it goes on after its end")
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrInvalid):
		return err
	}
	var mismatch *json.UnmarshalTypeError
	switch at, problem := Misfit(req, body); {
	case errors.As(err, &mismatch) && at != "":
		return fmt.Errorf("%w request: %s cannot be %s", store.ErrInvalid, at, mismatch.Value)
	case errors.As(err, &mismatch):
		return fmt.Errorf("%w request: it cannot be %s", store.ErrInvalid, mismatch.Value)
	case problem == notAField:
		return fmt.Errorf("%w request: unknown field %q", store.ErrInvalid, at)
	}
	return fmt.Errorf("%w request: %w", store.ErrInvalid, err)
}

var timeType = reflect.TypeFor[time.Time]()

// text formats a field for the path or the query.
func text(v reflect.Value) string {
	if v.Type() == timeType {
		return v.Interface().(time.Time).UTC().Format(time.RFC3339Nano)
	}
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return "1"
		}
		return ""
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	return v.String()
}

// parse sets a field from the output of text; "" is its zero value.
func parse(v reflect.Value, name, s string) error {
	if s == "" {
		v.SetZero()
		return nil
	}
	bad := func(use string) error {
		return fmt.Errorf("%w %s %q: use %s", store.ErrInvalid, name, store.Clip(s, 80), use)
	}
	if v.Type() == timeType {
		t, err := time.Parse(time.RFC3339Nano, s)
		if year := t.UTC().Year(); err != nil || year < 0 || year > 9999 { // times are sent in UTC, with years of four digits
			return bad("RFC 3339")
		}
		v.Set(reflect.ValueOf(t))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Bool:
		if s != "0" && s != "1" {
			return bad("1 or 0")
		}
		v.SetBool(s == "1")
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v.OverflowInt(n) {
			return bad("a whole number")
		}
		v.SetInt(n)
	case reflect.Uint64:
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return bad("a whole number")
		}
		v.SetUint(n)
	case reflect.Float64:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return bad("a number")
		}
		v.SetFloat(f)
	default: // a programming error in the request type
		panic("daemon/api: a field of " + name + " has a type that neither a path nor a query carries: " + v.Type().String())
	}
	return nil
}

// Change copies the non-nil fields of patch to the fields of record with the same names.
// The fields of a patch are the only list of what may change.
func Change(record, patch any) {
	to, from := reflect.ValueOf(record).Elem(), reflect.ValueOf(patch)
	for _, f := range reflect.VisibleFields(from.Type()) {
		v := from.FieldByIndex(f.Index)
		if field := to.FieldByName(f.Name); f.Type.Kind() == reflect.Pointer && !v.IsNil() && field.IsValid() {
			field.Set(v.Elem())
		}
	}
}
