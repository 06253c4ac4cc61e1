//go:build !unix

package main

// restrictFiles does nothing: files have no such permissions on this system.
func restrictFiles() {}
