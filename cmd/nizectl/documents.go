package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

// documentsCommand is the group of commands.
func documentsCommand(a *command.App) *cli.Command {
	scope := func(usage string) cli.Flag { return &cli.StringFlag{Name: "scope", Usage: "`SCOPE`: " + usage} }
	return command.Group("documents", "manage documents that the assistant can read",
		a.Command(command.Leaf{Name: "add", Args: "FILE", Usage: "save the text of a file as a document", Run: documentsAdd, Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "`NAME` of the document; the file's own if not given"},
			scope("user, team, team:TEAM or project:NAME; user if not given")}}),
		a.Command(command.Leaf{Name: "list", Usage: "list the documents that you may read", Run: documentsList, Flags: []cli.Flag{
			scope("only those of user, team, team:TEAM, project or project:NAME")}}),
		a.Command(command.Leaf{Name: "show", Args: "DOCUMENT", Usage: "show the text of a document", More: "DOCUMENT is its id, a unique prefix of it, or its name.", Names: documentsNames, IDs: documentsIDs, Run: documentsShow, Flags: []cli.Flag{
			&cli.IntFlag{Name: "page", Usage: "only page `N`"}}}),
		a.Command(command.Leaf{Name: "search", Args: "QUERY", Usage: "find documents by words, best match first", Run: documentsSearch, Flags: []cli.Flag{
			&cli.StringFlag{Name: "in", Usage: "show the matching lines of one `DOCUMENT`"},
			&cli.IntFlag{Name: "limit", Usage: "`N` results; 20 if not given"}}}),
		a.Command(command.Leaf{Name: "remove", Args: "[DOCUMENT]", Usage: "remove a document, or all of a scope", Names: documentsNames, IDs: documentsIDs, Run: documentsRemove, Flags: []cli.Flag{
			scope("with --all: user, team, team:TEAM or project:NAME"),
			&cli.BoolFlag{Name: "all", Usage: "all documents of --scope"}, command.YesFlag()}}))
}

func documentsNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListDocuments.Call(ctx, c, api.ListDocumentsRequest{})
	return command.Each(list.Items, func(d api.DocumentView) string { return d.Name }), err
}

func documentsIDs(ctx context.Context, c *api.Client) ([]command.ID, error) {
	list, err := api.ListDocuments.Call(ctx, c, api.ListDocumentsRequest{})
	return command.Each(list.Items, func(d api.DocumentView) command.ID { return command.ID{ID: d.ID, About: d.Name} }), err
}

func documentsAdd(ctx context.Context, c *command.Call) error {
	f, err := os.Open(c.Arg(0))
	if err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return command.Usagef("%s is no regular file", c.Arg(0))
	}
	name := c.Cmd.String("name")
	if name == "" {
		name = filepath.Base(c.Arg(0))
	}
	d, err := api.AddDocument.Call(ctx, c.API, api.AddDocumentRequest{Name: name, Scope: c.Cmd.String("scope")}, io.LimitReader(f, info.Size()), info.Size())
	if err != nil {
		return err
	}
	return c.Report(d, "saved as %s (%s, %s): %s", d.Name, d.ScopeName, d.ID, command.Count(d.Pages, "page"))
}

func documentsList(ctx context.Context, c *command.Call) error {
	list, err := api.ListDocuments.Call(ctx, c.API, api.ListDocumentsRequest{Scope: c.Cmd.String("scope")})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("NAME", "SCOPE", "TYPE", "PAGES", "SAVED", "BY", "ID").Numbers(3)
	for _, d := range list.Items {
		t.Row(d.Name, d.ScopeName, d.Type, strconv.Itoa(d.Pages), c.When(d.Created), d.ByName, d.ID)
	}
	t.Print("no documents yet: nizectl documents add FILE")
	return nil
}

func documentsShow(ctx context.Context, c *command.Call) error {
	only := c.Cmd.Int("page")
	var all api.DocumentPage
	for n := max(only, 1); ; n++ {
		p, err := api.GetDocument.Call(ctx, c.API, api.GetDocumentRequest{ID: c.Arg(0), Page: n})
		if err != nil {
			return err
		}
		p.Page, p.Text = only, all.Text+p.Text
		if all = p; only > 0 || n == p.Pages {
			break
		}
	}
	if c.JSON {
		return c.PrintJSON(all)
	}
	c.Line("%s", strings.TrimSuffix(display.CleanLines(all.Text), "\n"))
	return nil
}

func documentsSearch(ctx context.Context, c *command.Call) error {
	list, err := api.SearchDocuments.Call(ctx, c.API, api.SearchDocumentsRequest{Query: c.Arg(0), In: c.Cmd.String("in"), Limit: c.Cmd.Int("limit")})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(command.Items(list.Items))
	}
	t := c.Table("DOCUMENT", "SCOPE", "PAGE", "LINE", "TEXT").Numbers(2, 3).Text(4)
	for _, h := range list.Items {
		line := "-"
		if h.Line > 0 {
			line = strconv.Itoa(h.Line)
		}
		t.Row(h.Name, h.ScopeName, strconv.Itoa(h.Page), line, command.Clip(h.Text, 120))
	}
	t.Print("nothing matches")
	return nil
}

func documentsRemove(ctx context.Context, c *command.Call) error {
	scope := c.Cmd.String("scope")
	if c.Cmd.Bool("all") {
		if scope == "" || c.Arg(0) != "" {
			return command.Usagef("documents remove --all takes --scope and no document")
		}
		if err := c.Confirm("Remove all documents of %s?", scope); err != nil {
			return err
		}
		gone, err := api.EraseDocuments.Call(ctx, c.API, api.EraseDocumentsRequest{Scope: scope})
		if err != nil {
			return err
		}
		return c.Report(gone, "%s removed", command.Count(gone.Documents, "document"))
	}
	if c.Arg(0) == "" || scope != "" {
		return command.Usagef("documents remove needs a document, or --all and --scope")
	}
	if err := c.Confirm("Remove the document %s?", c.Arg(0)); err != nil {
		return err
	}
	if _, err := api.RemoveDocument.Call(ctx, c.API, api.RemoveDocumentRequest{ID: c.Arg(0)}); err != nil {
		return err
	}
	return c.Removed("document", c.Arg(0))
}
