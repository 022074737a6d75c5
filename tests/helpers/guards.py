"""The guards of tfm's promise, and how to take each of them away.

`docs/reliability.md` lists them. `tests/test_guards.py` takes each away in a copy of the package and sees
its test fail.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Guard:
    """One guard.

    Attributes:
        name: What it is, as docs/reliability.md has it.
        file: Where it stands.
        text: The code that makes it, once in the file.
        without: What stands in its place when it is taken away.
        test: A test that turns red then.
    """

    name: str
    file: str
    text: str
    without: str
    test: str


FILES, CHECKPOINTS = "tests/system/test_files.py", "tests/engine/runs/test_checkpoint.py"
UNTRUSTED = "tests/system/test_untrusted.py"
GUARDS = [
    Guard(
        "a file is forced to the disk before it gets its name",
        "system/files.py",
        "            file.flush()\n            os.fsync(file.fileno())\n    except OSError as error:\n",
        "            file.flush()\n    except OSError as error:\n",
        f"{FILES}::test_file_is_synced_before_it_is_renamed_and_the_directory_after",
    ),
    Guard(
        "a new directory is forced to the disk",
        "system/files.py",
        "            sync_directory(made.parent)\n",
        "            pass\n",
        f"{FILES}::test_each_new_directory_and_each_new_log_is_synced_in_its_parent",
    ),
    Guard(
        "a file gets its name in one step",
        "system/files.py",
        "        write_file(staged, content)\n        os.replace(staged, path)",
        "        write_file(path, content)",
        f"{FILES}::test_failure_at_any_call_leaves_old_or_new_content",
    ),
    Guard(
        "a directory gets its name in one step",
        "system/files.py",
        "    staged = target.with_name(target.name + PARTIAL)\n    remove_tree(staged)",
        "    staged = target\n    remove_tree(staged)",
        f"{FILES}::test_directory_stays_as_it_was_after_an_error",
    ),
    Guard(
        "the old directory comes back if a kill came between two renames",
        "system/files.py",
        "        _put_back(path.with_name(path.name.removesuffix(_REPLACED)))",
        "        pass",
        f"{FILES}::test_killed_between_the_two_renames_the_old_directory_comes_back",
    ),
    Guard(
        "one writer at a time",
        "system/files.py",
        "            _lock(self._file)\n",
        "            pass\n",
        f"{FILES}::test_one_holder_at_a_time_in_one_process",
    ),
    Guard(
        "a torn last line of a log is left out",
        "system/files.py",
        "    with contextlib.suppress(ValueError, RecursionError):",
        "    with contextlib.suppress(RecursionError):",
        f"{FILES}::test_torn_last_line_is_left_out_and_cut_off",
    ),
    Guard(
        "a change of a file that holds its own hash is noticed",
        "system/files.py",
        "    if seal is not None and seal != sha256_bytes(json_bytes(value)):",
        "    if False:",
        f"{FILES}::test_one_changed_character_of_what_was_sealed_is_noticed",
    ),
    Guard(
        "results go on from what was forced to the disk",
        "system/files.py",
        "_keep_whole_lines(staged, safe)",
        "_keep_whole_lines(staged, 1 << 60)",
        f"{FILES}::test_lines_that_a_power_cut_may_have_taken_are_written_again",
    ),
    Guard(
        "every byte of a checkpoint is hashed before it is used",
        "engine/runs/checkpoint.py",
        '    if len(content) != entry["size"] or sha256_bytes(content) != entry["sha256"]:',
        '    if len(content) != entry["size"]:',
        f"{CHECKPOINTS}::test_one_changed_byte_anywhere_is_noticed",
    ),
    Guard(
        "a checkpoint is read back before an older one is removed",
        "engine/runs/checkpoint.py",
        "    if reason := damage(target):",
        '    if reason := "":',
        f"{CHECKPOINTS}::test_a_disk_that_does_not_keep_what_was_written_is_noticed",
    ),
    Guard(
        "pruning keeps the best checkpoint",
        "engine/runs/directory.py",
        "            if directory != best:",
        "            if directory:",
        f"{CHECKPOINTS}::test_pruning_keeps_the_newest_and_the_best",
    ),
    Guard(
        "a manifest lists the files of a checkpoint and no others",
        "engine/runs/checkpoint.py",
        "    if strangers := [name for name in files if name not in _FILES]:",
        "    if strangers := []:",
        f"{CHECKPOINTS}::test_a_manifest_that_lists_other_files_is_refused",
    ),
    Guard(
        "a score that is no number is never the best",
        "engine/runs/directory.py",
        "    return score is not None and math.isfinite(score)",
        "    return score is not None",
        f"{CHECKPOINTS}::test_a_score_that_is_no_number_is_never_the_best",
    ),
    Guard(
        "a run with links in it is not written to",
        "engine/runs/directory.py",
        "        refuse_links(self.path)\n",
        "",
        f"{CHECKPOINTS}::test_a_run_with_links_is_not_written_to",
    ),
    Guard(
        "links are not followed when a run is read",
        "system/untrusted.py",
        'getattr(os, "O_NOFOLLOW", 0)',
        "0",
        f"{UNTRUSTED}::test_what_is_no_plain_file_is_refused_at_once",
    ),
    Guard(
        "nothing but plain files is read",
        "system/untrusted.py",
        "            if not stat.S_ISREG(found.st_mode):",
        "            if False:",
        f"{UNTRUSTED}::test_what_is_no_plain_file_is_refused_at_once",
    ),
    Guard(
        "the size of a file is looked at before its content",
        "system/untrusted.py",
        "            if found.st_size > max_bytes:",
        "            if False:",
        f"{UNTRUSTED}::test_size_is_looked_at_before_content",
    ),
    Guard(
        "JSON of a run has a schema",
        "system/untrusted.py",
        "        if not _fits(value, hints[key]):",
        "        if False:",
        f"{UNTRUSTED}::test_values_of_other_types_are_refused_in_one_short_line",
    ),
    Guard(
        "shapes are compared before memory is taken",
        "engine/runs/weights.py",
        "    _refuse_other_depth(tensors, stored.description, stored.path)\n"
        "    _refuse_other_weights(tensors, described_model(stored.description), stored.path)\n"
        "    model = blank_model(stored.description)",
        "    model = blank_model(stored.description)",
        f"{CHECKPOINTS}::test_a_model_larger_than_its_file_is_refused_before_memory_is_taken",
    ),
    Guard(
        "a model that the machine cannot hold is refused before it is timed",
        "engine/training/setup.py",
        "    if memory is not None and needed > memory:",
        "    if False:",
        "tests/engine/training/test_setup.py"
        "::test_a_model_that_the_machine_cannot_hold_is_refused_before_anything_is_measured",
    ),
    Guard(
        "weights are finite float32 numbers when they are read",
        "engine/runs/weights.py",
        "        if not bool(tensor.sum().isfinite()) and not bool(tensor.isfinite().all()):",
        "        if False:",
        f"{CHECKPOINTS}::test_weights_with_other_numbers_are_refused",
    ),
    Guard(
        "a validation without a finite loss ends the run",
        "engine/training/fit.py",
        "        if not math.isfinite(result.get(name, 0.0)):",
        "        if False:",
        "tests/engine/training/test_fit.py::test_a_validation_without_a_finite_loss_ends_the_run_unsaved",
    ),
    Guard(
        "a tokenizer is the one that the model was trained with",
        "engine/runs/directory.py",
        "    if tokenizer.sha256 != expected_sha256:",
        "    if False:",
        "tests/engine/training/test_resume.py::test_a_foreign_tokenizer_is_refused",
    ),
    Guard(
        "files of other lengths are no parallel text",
        "data/formats/text.py",
        "        if s is missing or t is missing:",
        "        if False:",
        "tests/data/formats/test_text.py::test_unequal_line_counts_are_refused_with_both_counts",
    ),
    Guard(
        "what is full of control characters is no text",
        "data/reading.py",
        "        if self.found > max(FEW_CONTROLS, self.bytes // 100):",
        "        if False:",
        "tests/data/test_reading.py::test_what_is_full_of_control_characters_is_no_text",
    ),
    Guard(
        "JSON lines hold nothing that a terminal obeys",
        "system/files.py",
        '_OBEYED = re.compile("[\\x7f-\\x9f\\u2028\\u2029]")',
        '_OBEYED = re.compile("[^\\x00-\\U0010ffff]")',
        "tests/cli/test_lines.py::test_json_has_nothing_that_a_terminal_obeys_and_says_the_same",
    ),
    Guard(
        "a chunk of long lines does not fill the memory",
        "cli/lines.py",
        "(len(line) // _USUAL_BYTES if isinstance(line, bytes) else 0)",
        "0",
        "tests/cli/test_lines.py::test_long_lines_come_in_short_chunks",
    ),
    Guard(
        "a vocabulary's process ends with the one that started it",
        "data/sentencepiece_worker.py",
        "        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)",
        "        pass",
        "tests/data/test_tokenizer.py::test_sentencepiece_does_not_outlive_the_process_that_started_it",
    ),
    Guard(
        "an unknown vocabulary is first opened in another process",
        "data/tokenizer.py",
        "            try_vocabulary(model, path)\n",
        "",
        "tests/data/test_vocabulary_trial.py::test_what_tfm_has_built_is_known_and_other_files_are_tried",
    ),
    Guard(
        "that process reads the vocabulary before SentencePiece does",
        "data/vocabulary_trial_worker.py",
        "        check(model)\n",
        "",
        "tests/data/test_vocabulary_trial.py::test_a_vocabulary_that_changes_characters_is_refused",
    ),
    Guard(
        "that process has limits",
        "data/vocabulary_trial_worker.py",
        "    _limit()\n",
        "",
        "tests/data/test_vocabulary_trial_worker.py::test_a_trial_has_limits",
    ),
    Guard(
        "nothing is written to a closed standard output without a word",
        "cli/startup.py",
        "(os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)",
        "(os.O_RDONLY, os.O_RDWR, os.O_WRONLY)",
        "tests/cli/test_startup.py::test_output_that_cannot_be_written_is_an_error",
    ),
    Guard(
        "a signal is not raised in the midst of an import",
        "system/interrupts.py",
        "        elif _is_importing(frame):",
        "        elif False:",
        "tests/system/test_interrupts.py::test_during_an_import_nothing_is_raised",
    ),
    Guard(
        "a signal whose exception is dropped comes again",
        "system/interrupts.py",
        "            self._send_again(number)\n\n        self._raised",
        "            pass\n\n        self._raised",
        "tests/system/test_interrupts.py::test_a_signal_whose_exception_is_dropped_comes_again",
    ),
    Guard(
        "control characters do not reach the terminal",
        "system/reporter.py",
        "        self._print(visible(text))\n",
        "        self._print(text)\n",
        "tests/system/test_console.py::test_messages_are_made_visible",
    ),
    Guard(
        "brackets in brackets in brackets are no configuration",
        "configs/loader.py",
        "    if _looks_deep(text):",
        "    if False:",
        "tests/configs/test_loader.py::test_deep_nesting_is_refused_at_once",
    ),
    Guard(
        "numbers of a configuration are numbers",
        "configs/loader.py",
        "strict=True)",
        "strict=False)",
        "tests/configs/test_loader.py::test_a_number_is_a_number",
    ),
    Guard(
        "a model takes over only if a test finds it better",
        "engine/improve/models.py",
        "return self.after > self.before and self.p_value < SIGNIFICANT",
        "return True",
        "tests/cli/test_improve.py::test_unrelated_text_leaves_the_run_as_it_was",
    ),
    Guard(
        "no line of the validation set is learned from",
        "engine/improve/sources.py",
        '    reasons |= {hash(clean(line)): "in the validation set" for line in dev}\n',
        "",
        "tests/engine/improve/test_sources.py::test_lines_that_bring_nothing_or_must_not_be_seen_are_left_out",
    ),
    Guard(
        "no training goes on from a model that was made elsewhere",
        "engine/runs/directory.py",
        "        sound = [path for path in sound if not improved_with(read_state(path))]\n",
        "",
        "tests/cli/test_improve.py::test_an_improved_run_is_used_as_any_other",
    ),
    Guard(
        "a copy of the leader's files is what the leader has sent",
        "engine/workers/handout.py",
        "            if sha256_file(path) != sha256:\n",
        "            if False:\n",
        "tests/engine/workers/test_handout.py::test_a_copy_that_is_not_what_was_sent_is_refused",
    ),
    Guard(
        "no process waits for a torchrun that has ended",
        "engine/workers/watch.py",
        "                self._end(_STORE_HAS_GONE)",
        "                pass",
        "tests/engine/workers/test_watch.py::test_a_process_ends_where_the_store_has_gone",
    ),
    Guard(
        "no process waits for a machine that is out of reach",
        "engine/workers/watch.py",
        "        threading.Thread(target=self._look_at_the_wire, daemon=True).start()\n",
        "",
        "tests/engine/workers/test_watch.py::test_a_process_ends_where_a_call_of_the_store_does_not_return",
    ),
    Guard(
        "an export is read only as it was written",
        "engine/runs/exported.py",
        "    files = {name: read_file(directory, name) for",
        "    files = {name: (directory / name).read_bytes() for",
        "tests/engine/runs/test_exported.py::test_one_changed_byte_is_noticed",
    ),
]
