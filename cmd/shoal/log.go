package main

import (
	"fmt"
	"log/slog"
	"os"
)

// durationsAsText makes a JSON log write durations as a text log does: 540ms, not 540000000.
func durationsAsText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// logger returns the logger that the flags describe.
func (f *serveFlags) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", f.logLevel)
	}

	// Do not buffer the log, so that a supervisor gets every line.
	opt := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, opt)), nil
	case "json":
		opt.ReplaceAttr = durationsAsText
		return slog.New(slog.NewJSONHandler(os.Stderr, opt)), nil
	}
	return nil, fmt.Errorf("--log-format %q: want text or json", f.logFormat)
}
