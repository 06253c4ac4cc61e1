//go:build !unix

package main

// restrictFiles has nothing to do: files have no such modes here.
func restrictFiles() {}
