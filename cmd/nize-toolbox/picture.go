package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/image/colornames"
)

type colorArgs struct {
	Color string `json:"color" jsonschema:"A colour as #ff8800 or by its name in CSS, e.g. teal"`
}

// addColor adds an example of a tool whose result is a picture.
func addColor(s *sdk.Server) {
	addCall(s, about(reads, "show_color", "Show a colour", "Paints a colour as a picture and returns its red, green and blue values. Example: teal, #ff8800."),
		limits{"color": length(1, 40)}, func(_ context.Context, _ *sdk.CallToolRequest, in colorArgs) ([]sdk.Content, colorArgs, error) {
			c, ok := colornames.Map[strings.ToLower(strings.ReplaceAll(in.Color, " ", ""))]
			if n, _ := fmt.Sscanf(in.Color, "#%02x%02x%02x", &c.R, &c.G, &c.B); !ok && (n != 3 || len(in.Color) != 7) {
				return nil, in, fmt.Errorf("unknown color %.60q: write it as #ff8800%s", in.Color, suggest(strings.ToLower(in.Color), slices.Clone(colornames.Names)))
			}
			swatch := image.NewRGBA(image.Rect(0, 0, 160, 96))
			draw.Draw(swatch, swatch.Bounds(), image.NewUniform(color.RGBA{c.R, c.G, c.B, 255}), image.Point{}, draw.Src)
			var picture bytes.Buffer
			if err := png.Encode(&picture, swatch); err != nil {
				return nil, in, fmt.Errorf("painting: %w", err)
			}
			out := colorArgs{fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)}
			text := fmt.Sprintf("%s is %s: red %d, green %d, blue %d", in.Color, out.Color, c.R, c.G, c.B)
			return []sdk.Content{&sdk.TextContent{Text: text}, &sdk.ImageContent{Data: picture.Bytes(), MIMEType: "image/png"}}, out, nil
		})
}

type countdownArgs struct {
	Seconds int `json:"seconds" jsonschema:"How long to count"`
}

// addCountdown adds an example of a long task: it reports progress to a client that sent a
// progress token, and stops when the call is cancelled.
func addCountdown(s *sdk.Server) {
	addCall(s, about(reads, "countdown", "Count down", "Counts down a number of seconds as a timer, and reports progress each second. Ends early when it is cancelled."),
		limits{"seconds": between(1, 3600)},
		func(ctx context.Context, req *sdk.CallToolRequest, in countdownArgs) ([]sdk.Content, countdownArgs, error) {
			for done := 1; done <= in.Seconds; done++ {
				select {
				case <-ctx.Done():
					return nil, in, fmt.Errorf("cancelled after %d s", done-1)
				case <-time.After(time.Second):
				}
				if token := req.Params.GetProgressToken(); token != nil {
					_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(done), Total: float64(in.Seconds), Message: fmt.Sprint(in.Seconds-done, " s left")})
				}
			}
			return []sdk.Content{&sdk.TextContent{Text: fmt.Sprint("The time is up: ", in.Seconds, " s")}}, in, nil
		})
}
