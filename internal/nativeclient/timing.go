package nativeclient

import "time"

// How long a client waits for what. All are far below the minute after which members retire a silent client's sessions.
const (
	PingInterval    = 2 * time.Second
	DeafAfter       = 5 * time.Second         // a stream that received nothing for so long counts as dead
	LeaderlessAfter = 1500 * time.Millisecond // a link whose member has known no leader for so long is given up
	RetryPause      = 50 * time.Millisecond   // before Retry, while the table is Pausing
	FirstBackoff    = 20 * time.Millisecond   // before a stream is opened again; it doubles up to MaxBackoff
	MaxBackoff      = time.Second
)
