package api

import "time"

// Document is a document without its text.
type Document struct {
	ID      string    `json:"id"`
	Scope   string    `json:"scope"` // user:ID, team:TEAM or project:ID
	Name    string    `json:"name"`
	Type    string    `json:"type"` // media type of the file that it was read from
	Size    int64     `json:"size"` // bytes of its text
	Pages   int       `json:"pages"`
	Lines   int       `json:"lines"`
	By      string    `json:"by,omitempty"` // the user who saved it
	Created time.Time `json:"created"`
}

// DocumentView is a document, with the names of its owner and of the person who saved it.
type DocumentView struct {
	Document
	ScopeName string `json:"scope_name"` // user, team:TEAM or project:NAME
	ByName    string `json:"by_name,omitempty"`
}

// AddDocument saves a file as a document.
var AddDocument = Upload[AddDocumentRequest, DocumentView]{"POST", "/v1/documents", false, "save a file as a document"}

// AddDocumentRequest is the name and scope of the document.
type AddDocumentRequest struct {
	Name  string `query:"name" json:"-"`
	Scope string `query:"scope" json:"-"` // user, team, team:TEAM or project:NAME; "" is user
}

// ListDocuments lists the documents that the caller may read.
var ListDocuments = Op[ListDocumentsRequest, List[DocumentView]]{"GET", "/v1/documents", false, "list documents"}

// ListDocumentsRequest selects a scope; "" is all.
type ListDocumentsRequest struct {
	Scope string `query:"scope" json:"-"`
}

// GetDocument returns a document and one page of its text.
var GetDocument = Op[GetDocumentRequest, DocumentPage]{"GET", "/v1/documents/{id}", false, "show a document and one of its pages"}

// GetDocumentRequest names a document, by its id or by a unique name.
type GetDocumentRequest struct {
	ID   string `path:"id" json:"-"`
	Page int    `query:"page" json:"-"` // 0 is the first
}

// DocumentPage is a document with one page.
type DocumentPage struct {
	DocumentView
	Page int    `json:"page,omitempty"`
	Text string `json:"text"`
}

// SearchDocuments finds documents by words, or lines of one document.
var SearchDocuments = Op[SearchDocumentsRequest, List[DocumentHit]]{"GET", "/v1/document-search", false, "search in documents"}

// SearchDocumentsRequest is a search.
type SearchDocumentsRequest struct {
	Query string `query:"query" json:"-"`
	In    string `query:"in" json:"-"` // one document; "" is all
	Limit int    `query:"limit" json:"-"`
}

// DocumentHit is a matching line.
type DocumentHit struct {
	Document
	Page      int     `json:"page"`
	Line      int     `json:"line"` // 0 if only the name matches
	Text      string  `json:"text,omitempty"`
	Score     float64 `json:"score"`
	ScopeName string  `json:"scope_name"`
}

// RemoveDocument removes a document.
var RemoveDocument = Op[RemoveDocumentRequest, Empty]{"DELETE", "/v1/documents/{id}", false, "remove a document"}

// RemoveDocumentRequest names a document.
type RemoveDocumentRequest struct {
	ID string `path:"id" json:"-"`
}

// EraseDocuments removes all documents of a scope.
var EraseDocuments = Op[EraseDocumentsRequest, ErasedDocuments]{"DELETE", "/v1/documents", false, "remove all documents of a scope"}

// EraseDocumentsRequest names a scope.
type EraseDocumentsRequest struct {
	Scope string `query:"scope" json:"-"`
}

// ErasedDocuments is the number of documents removed.
type ErasedDocuments struct {
	Documents int `json:"documents"`
}
