package view

import "nize/bots/markdown"

// sizes fit Slack's messages, which accept 12,000 characters of Markdown.
var sizes = markdown.Sizes{Part: 10_000, Soft: 8_500, Word: 9_500, Lead: 1_000}

// FirstPart returns the part of a text that its first message contains.
func FirstPart(text string) string { return sizes.FirstPart(text) }

// Split splits a text in the same places as streaming does.
func Split(text string) []string { return sizes.Split(text) }

// Dress returns what a message shows of a text: see [markdown.Sizes.Dress].
func Dress(before, body string, more bool) string { return sizes.Dress(before, body, more) }

// TailOf closes the code block that text leaves open.
func TailOf(text string) string { return sizes.TailOf(text) }
