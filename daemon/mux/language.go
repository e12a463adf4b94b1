package mux

import (
	"net/http"
	"reflect"
	"strings"

	"nize/store"
)

// Speaker prints nize's texts in one language; a catalogue of bots/phrases implements it.
type Speaker interface {
	Text(t store.Text) string
	Problem(err error) string
}

// speaker returns the one for the language that a request asks for; nil is English.
func (m *Mux) speaker(r *http.Request) Speaker {
	locale, _, _ := strings.Cut(r.Header.Get("Accept-Language"), ",")
	if locale, _, _ = strings.Cut(locale, ";"); locale == "" || m.opt.Speak == nil {
		return nil
	}
	return m.opt.Speak(strings.TrimSpace(locale))
}

// inLanguage returns a copy of a response with every text in the speaker's language. It
// doesn't change v.
func inLanguage(v any, s Speaker) any {
	if s == nil || v == nil {
		return v
	}
	return translated(reflect.ValueOf(v), s).Interface()
}

func translated(v reflect.Value, s Speaker) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			p := reflect.New(v.Type().Elem())
			p.Elem().Set(translated(v.Elem(), s))
			return p
		}
	case reflect.Interface:
		if !v.IsNil() {
			return translated(v.Elem(), s)
		}
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			return v
		}
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			list.Index(i).Set(translated(v.Index(i), s))
		}
		return list
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		all := reflect.MakeMapWithSize(v.Type(), v.Len())
		for k, e := range v.Seq2() {
			all.SetMapIndex(k, translated(e, s))
		}
		return all
	case reflect.Struct:
		return translatedStruct(v, s)
	}
	return v
}

func translatedStruct(v reflect.Value, s Speaker) reflect.Value {
	if t, ok := v.Interface().(store.Text); ok {
		return reflect.ValueOf(store.Plain(s.Text(t)))
	}
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			out.Field(i).Set(translated(v.Field(i), s))
		}
	}
	if turn, ok := out.Addr().Interface().(*store.Turn); ok { // nize's own texts in a turn are stored in English
		said := v.Interface().(store.Turn).Said
		if turn.Role != store.FromModel && turn.Text == said.String() {
			turn.Text = s.Text(said)
		}
	}
	return out
}
