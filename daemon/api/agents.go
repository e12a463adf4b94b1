package api

import "nize/store"

// ListAgents lists the agents that the caller may use.
var ListAgents = Op[Empty, List[store.Agent]]{"GET", "/v1/agents", false, "list agents"}

// PutAgent creates an agent, or replaces it if the id exists.
var PutAgent = Op[PutAgentRequest, store.Agent]{"PUT", "/v1/agents/{id}", true, "create or change an agent"}

// PutAgentRequest is an agent under its id.
type PutAgentRequest struct {
	ID string `path:"id" json:"-"`
	store.Agent
}

// RemoveAgent removes an agent.
var RemoveAgent = Op[RemoveAgentRequest, Empty]{"DELETE", "/v1/agents/{id}", true, "remove an agent"}

// RemoveAgentRequest names an agent.
type RemoveAgentRequest struct {
	ID string `path:"id" json:"-"`
}
