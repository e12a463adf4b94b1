// Package control implements the operations of the control API, one noun per file.
//
// nizectl, chats and pages share them. A noun is a struct of its few dependencies; an
// operation is a method that takes the caller and the request and returns a value or an
// error. None of them uses HTTP: package mux mounts them, and package commands calls the
// same methods for chats.
package control
