package node

import (
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/gauge"
	"github.com/shoalsearch/shoal/node/host"
)

// connectionMetrics returns the gauges of the connections. They come from the catalog, so every
// node shows the same.
func connectionMetrics() []stateMetric { return slices.Concat(listingMetrics(), credentialMetrics()) }

// listingMetrics returns the metrics of each connection's last listing: its failures, its counts of
// repositories and its issues.
func listingMetrics() []stateMetric {
	return []stateMetric{
		{Desc: gauge.Desc("shoal_connection_failed", "1 while the last sync of a connection failed.", "connection"),
			Read: eachConnection(func(_ *snapshot, c *catalog.Connection, emit gauge.Emit) {
				emit(gauge.Truth(c.Error != ""), c.Name)
			})},

		{Desc: gauge.Desc("shoal_connection_repos", "Repositories of a connection at its last listing, by state: listed, held and kept (missing, and not let go).", "connection", "state"),
			Read: eachConnection(func(_ *snapshot, c *catalog.Connection, emit gauge.Emit) {
				emit(float64(c.Repos), c.Name, "listed")
				emit(float64(c.Held), c.Name, "held")
				emit(float64(c.Kept), c.Name, "kept")
			})},

		{Desc: gauge.Desc("shoal_connection_left_out_repos", "Repositories that the last listing of a connection left out, by reason.", "connection", "reason"),
			Read: eachConnection(func(_ *snapshot, c *catalog.Connection, emit gauge.Emit) {
				for _, why := range c.Excluded {
					emit(float64(why.Count), c.Name, why.Reason)
				}
			})},

		{Desc: gauge.Desc("shoal_connection_issues", "Issues of the last listing of a connection, and TOKEN_REFUSED while its host refuses the token, by code.", "connection", "code"),
			Read: eachConnection(func(_ *snapshot, c *catalog.Connection, emit gauge.Emit) {
				count := map[string]int{}
				if !c.RefusedAt.IsZero() {
					count[string(host.TokenRefused)]++
				}
				for _, i := range c.Issues {
					count[i.Code]++
				}
				for code, n := range count {
					emit(float64(n), c.Name, code)
				}
			})},

		// When it was listed, and how long that took.
		{Desc: gauge.Desc("shoal_connection_listed_timestamp_seconds", "When a connection was last listed without anything that failed; 0 where it never was.", "connection"),
			Read: eachConnection(func(_ *snapshot, c *catalog.Connection, emit gauge.Emit) {
				if c.WholeAt.IsZero() {
					emit(0, c.Name)
					return
				}
				emit(float64(c.WholeAt.Unix()), c.Name)
			})},
		{Desc: gauge.Desc("shoal_connection_listing_seconds", "How long the last sync of a connection took that has ended; absent before the first.", "connection"),
			Read: eachConnection(func(s *snapshot, c *catalog.Connection, emit gauge.Emit) {
				j := s.view.Job(catalog.JobSync, c.Name)
				if j != nil && j.FinishedAt.After(j.GrantedAt) && !j.GrantedAt.IsZero() {
					emit(j.FinishedAt.Sub(j.GrantedAt).Seconds(), c.Name)
				}
			})},
	}
}

// credentialMetrics returns the gauges of rate limits and tokens, as the hosts reported them.
func credentialMetrics() []stateMetric {
	return []stateMetric{
		{Desc: gauge.Desc("shoal_connection_calls", "Calls that the last listing of a connection made.", "connection"),
			Read: eachConnection(func(_ *snapshot, c *catalog.Connection, emit gauge.Emit) {
				emit(float64(c.Account.Calls), c.Name)
			})},

		// A share, since each host has a limit of its own.
		{Desc: gauge.Desc("shoal_connection_calls_left_ratio", "Share of the calls of a period that the host left to the credential of a connection, after its last listing; absent where the host does not say.", "connection"),
			Read: eachConnection(func(_ *snapshot, c *catalog.Connection, emit gauge.Emit) {
				if c.Account.Limit > 0 {
					emit(float64(c.Account.Remaining)/float64(c.Account.Limit), c.Name)
				}
			})},
		{Desc: gauge.Desc("shoal_connection_token_expires_timestamp_seconds", "When the token of a connection ends; absent where the host does not say.", "connection"),
			Read: eachConnection(func(_ *snapshot, c *catalog.Connection, emit gauge.Emit) {
				if !c.Account.Expires.IsZero() {
					emit(float64(c.Account.Expires.Unix()), c.Name)
				}
			})},

		{Desc: gauge.Desc("shoal_connection_token_refused_timestamp_seconds", "Since when the host refuses the token of a connection; absent while it does not.", "connection"),
			Read: eachConnection(func(_ *snapshot, c *catalog.Connection, emit gauge.Emit) {
				if !c.RefusedAt.IsZero() {
					emit(float64(c.RefusedAt.Unix()), c.Name)
				}
			})},
		{Desc: gauge.Desc("shoal_connection_hidden", "1 while the repositories that only this connection lists are hidden, since the host has refused its token for 30 days.", "connection"),
			Read: eachConnection(func(_ *snapshot, c *catalog.Connection, emit gauge.Emit) {
				emit(gauge.Truth(!c.HiddenAt.IsZero()), c.Name)
			})},
	}
}

// eachConnection makes a reader that calls read for every connection.
func eachConnection(read func(*snapshot, *catalog.Connection, gauge.Emit)) func(*snapshot, gauge.Emit) {
	return func(s *snapshot, emit gauge.Emit) {
		for c := range s.view.Connections() {
			read(s, c, emit)
		}
	}
}
