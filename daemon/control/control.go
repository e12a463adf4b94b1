// Package control is the operations of the control API: what nizectl, a chat
// and a page can ask of the daemon, one noun a file. A noun is a struct of the
// few things that it needs; an operation is a method of the caller and the
// request, which answers with a value or an error. None sees HTTP: package mux
// mounts them, and package commands calls the same methods for people in chats.
package control
