package config

import "time"

// Settings are the global settings, with defaults filled in. Counts and sizes are at least 1,
// durations at least a millisecond.
type Settings struct {
	MaxFileSize     int64 // bytes; a larger file is indexed by name only
	MaxTrigramCount int   // a file with more distinct trigrams is indexed by name only

	ReindexInterval                 time.Duration // each repository is indexed again after this time
	ResyncConnectionInterval        time.Duration // each connection is listed again after this time
	ResyncConnectionPollingInterval time.Duration // interval of looking for due connections
	ReindexRepoPollingInterval      time.Duration // interval of looking for due repositories

	MaxConnectionSyncJobs        int // at a time in the cluster
	MaxRepoIndexingJobs          int // at a time on each node
	MaxRepoGarbageCollectionJobs int // at a time on each node
	MaxAccountPermissionSyncJobs int // at a time in the cluster
	MaxRepoPermissionSyncJobs    int // at a time in the cluster
	RepoGarbageCollectionGrace   time.Duration
	RepoIndexTimeout             time.Duration // an index job is stopped after this time
	RepoDrivenPermissionInterval time.Duration
	UserDrivenPermissionInterval time.Duration
	EnablePublicAccess           bool // deprecated by FORCE_ENABLE_ANONYMOUS_ACCESS
}

// DefaultSettings returns the settings of an empty file.
func DefaultSettings() Settings {
	// These are Sourcebot's defaults, so that a file means the same.
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
