package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"nize/store"
	"nize/store/document"
)

const (
	documentCount = 10_000
	documentSize  = 100_000
	documentWords = 200_000 // different ones, as often as those of a language
)

// documents measures the search in documents at a gigabyte of text, which is sealed
// in the database like what people save, and what it needs of memory.
func (b *bench) documents(ctx context.Context) (err error) {
	dir := filepath.Join(b.dir, "documents")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	db, err := openStore(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(), os.RemoveAll(dir)) }()
	random := rand.New(rand.NewPCG(1, 2))
	words := make([]string, documentWords)
	for i := range words {
		word := make([]byte, 3+random.IntN(7))
		for j := range word {
			word[j] = byte('a' + random.IntN(26))
		}
		words[i] = string(word)
	}
	by, scope := store.Caller{User: "ann", Surface: store.OnCLI}, document.ScopeOf(document.Team, "local")
	began := time.Now()
	var writers sync.WaitGroup
	numbers, failed := make(chan int), make(chan error, 4) // one for each writer
	for w := range cap(failed) {
		writers.Go(func() {
			often := rand.NewZipf(rand.New(rand.NewPCG(3, uint64(w))), 1.1, 5, documentWords-1)
			for n := range numbers {
				var text strings.Builder
				for i := 0; text.Len() < documentSize; i++ {
					text.WriteString(words[often.Uint64()] + " \n"[min(i%12/11, 1):][:1])
				}
				d := document.Document{Scope: scope, Name: fmt.Sprintf("document %d", n), Type: "text/plain"}
				if _, err := db.PutDocument(ctx, by, d, document.Split(text.String()), document.Limits{Count: documentCount, Stored: 1 << 40}); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	for n := range documentCount {
		select {
		case numbers <- n:
		case err := <-failed:
			return err
		}
		if n%32 == 31 {
			if err := db.MergeDocuments(ctx, scope); err != nil {
				return err
			}
		}
	}
	close(numbers)
	writers.Wait()
	of := fmt.Sprintf(", %d documents of %d kB", documentCount, documentSize/1000)
	b.table.add(row{what: "documents saved" + of, value: documentCount / time.Since(began).Seconds(), unit: "/s"})
	before := heap()
	often := rand.NewZipf(random, 1.1, 5, documentWords-1)
	took, err := searches(queries*3, func(int) (time.Duration, error) {
		query := words[often.Uint64()] + " " + words[often.Uint64()] + " " + words[often.Uint64()]
		begin := time.Now()
		_, err := db.SearchDocuments(ctx, []document.Scope{scope}, query, 10)
		return time.Since(begin), err
	})
	if err != nil {
		return err
	}
	b.table.add(row{what: "a search in all documents, 3 words, p50" + of, value: millis(median(took)), unit: "ms", floor: 20, reference: fmt.Sprintf("p99 %s ms; heap %s MB more", number(millis(late(took))), number(max(heap()-before, 0)))})
	return nil
}
