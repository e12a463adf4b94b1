package mcp

// CountCanonical calls counted each time the gateway makes arguments canonical. It must be
// called before the first call.
func (g *Gateway) CountCanonical(counted func()) { g.validator.counted = counted }
