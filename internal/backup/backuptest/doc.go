// Package backuptest ships the backup of a state machine to a place, for tests of what restores it. Any error fails the test.
package backuptest
