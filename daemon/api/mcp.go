package api

// ServeMCP speaks MCP on the connection, in lines as over standard input and
// output: the caller's own tools, without a token.
var ServeMCP = Duplex{"GET", "/v1/mcp", false, "speak MCP on this connection"}
