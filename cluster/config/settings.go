package config

import "time"

// Settings are the global settings of service.md §2.2, with their defaults
// filled in. Counts and sizes are at least 1, durations at least
// a millisecond.
type Settings struct {
	MaxFileSize     int64 // bytes; a larger file is kept by name only
	MaxTrigramCount int   // a file with more distinct trigrams is kept by name only

	ReindexInterval                 time.Duration // every repository is indexed again after
	ResyncConnectionInterval        time.Duration // every connection is synced again after
	ResyncConnectionPollingInterval time.Duration // how often due connections are looked for
	ReindexRepoPollingInterval      time.Duration // how often due repositories are looked for

	MaxConnectionSyncJobs        int // running at once in the cluster
	MaxRepoIndexingJobs          int // running at once on each node
	MaxRepoGarbageCollectionJobs int // running at once on each node
	MaxAccountPermissionSyncJobs int // running at once in the cluster
	MaxRepoPermissionSyncJobs    int // running at once in the cluster
	RepoGarbageCollectionGrace   time.Duration
	RepoIndexTimeout             time.Duration // a hard stop of an index job
	RepoDrivenPermissionInterval time.Duration
	UserDrivenPermissionInterval time.Duration
	EnablePublicAccess           bool // deprecated: FORCE_ENABLE_ANONYMOUS_ACCESS
}

// DefaultSettings are the settings of a file without any.
func DefaultSettings() Settings {
	// Those of the reference, so that a file means the same here.
	return Settings{
		MaxFileSize:              2 << 20,
		MaxTrigramCount:          20000,
		ReindexInterval:          time.Hour,
		ResyncConnectionInterval: 24 * time.Hour,

		ResyncConnectionPollingInterval: time.Second,
		ReindexRepoPollingInterval:      time.Second,

		MaxConnectionSyncJobs:        8,
		MaxRepoIndexingJobs:          8,
		MaxRepoGarbageCollectionJobs: 8,
		MaxAccountPermissionSyncJobs: 8,
		MaxRepoPermissionSyncJobs:    8,

		RepoGarbageCollectionGrace:   10 * time.Second,
		RepoIndexTimeout:             2 * time.Hour,
		RepoDrivenPermissionInterval: 24 * time.Hour,
		UserDrivenPermissionInterval: 24 * time.Hour,
	}
}
