package api

// SearchRegistry searches the MCP registry that registry.url names, the latest
// version of each server.
var SearchRegistry = Op[SearchRegistryRequest, RegistryPage]{"GET", "/v1/registry/servers", true, "search the MCP registry"}

// SearchRegistryRequest is a search. Cursor is the Next of the previous page.
type SearchRegistryRequest struct {
	Search string `query:"search" json:"-"`
	Cursor string `query:"cursor" json:"-"`
	Limit  int    `query:"limit" json:"-"` // at most 100; 0 is 30
}

// RegistryPage is one page of a search.
type RegistryPage struct {
	Servers []RegistryServer `json:"servers"`
	Next    string           `json:"next,omitempty"` // "" on the last page
}

// GetRegistryServer returns one server of the registry.
var GetRegistryServer = Op[RegistryServerRequest, RegistryServer]{"GET", "/v1/registry/servers/{name}", true, "show a server of the MCP registry"}

// RegistryServerRequest names a server, such as io.github.acme/files; Version "" is the
// latest.
type RegistryServerRequest struct {
	Name    string `path:"name" json:"-"`
	Version string `query:"version" json:"-"`
}

// RegistryServer is a publisher's description of a server; none of it is verified. Its
// fields have the names of server.json.
type RegistryServer struct {
	Name        string            `json:"name"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Version     string            `json:"version"`
	Status      string            `json:"status,omitempty"` // active, deprecated or deleted
	WebsiteURL  string            `json:"websiteUrl,omitempty"`
	Packages    []RegistryPackage `json:"packages,omitempty"`
	Remotes     []RegistryRemote  `json:"remotes,omitempty"`
}

// RegistryPackage is a program that runs the server.
type RegistryPackage struct {
	Type             string             `json:"registryType"` // npm, pypi, oci, nuget, mcpb …
	BaseURL          string             `json:"registryBaseUrl,omitempty"`
	Identifier       string             `json:"identifier"`
	Version          string             `json:"version,omitempty"`
	SHA256           string             `json:"fileSha256,omitempty"`
	RuntimeHint      string             `json:"runtimeHint,omitempty"`
	Transport        RegistryRemote     `json:"transport"`
	RuntimeArguments []RegistryArgument `json:"runtimeArguments,omitempty"`
	PackageArguments []RegistryArgument `json:"packageArguments,omitempty"`
	Environment      []RegistryNamed    `json:"environmentVariables,omitempty"`
}

// RegistryRemote is a server's URL, or the transport of a package.
type RegistryRemote struct {
	Type      string                   `json:"type"` // stdio, streamable-http or sse
	URL       string                   `json:"url,omitempty"`
	Headers   []RegistryNamed          `json:"headers,omitempty"`
	Variables map[string]RegistryInput `json:"variables,omitempty"` // placeholders in URL
}

// RegistryInput is a fixed value, or one to prompt for.
type RegistryInput struct {
	Description string                   `json:"description,omitempty"`
	Required    bool                     `json:"isRequired,omitempty"`
	Secret      bool                     `json:"isSecret,omitempty"`
	Format      string                   `json:"format,omitempty"`
	Value       string                   `json:"value,omitempty"`
	Default     string                   `json:"default,omitempty"`
	Placeholder string                   `json:"placeholder,omitempty"`
	Choices     []string                 `json:"choices,omitempty"`
	Variables   map[string]RegistryInput `json:"variables,omitempty"` // placeholders in Value
}

// RegistryNamed is the value of a variable or a header.
type RegistryNamed struct {
	Name string `json:"name"`
	RegistryInput
}

// RegistryArgument is a command-line word, or a flag with its value.
type RegistryArgument struct {
	Type      string `json:"type"` // positional or named
	Name      string `json:"name,omitempty"`
	ValueHint string `json:"valueHint,omitempty"`
	Repeated  bool   `json:"isRepeated,omitempty"`
	RegistryInput
}
