"""Text without translations, put to use: `tfm improve`.

    course      the stages in their order, from a run to its verdict
    sources     what is improved and with what: the run's own pairs, and lines that are fit to be translated
    pairs       made pairs: lines and their translations, resumable; which of them are kept, and their tags
    models      trainings: of the opposite direction, of the next model; and the test that compares two models
    budget      time: what is left, and what was decided by it
    takeover    the better model becomes a checkpoint of the run

    RUN/improve/pairs-1a2b3c4d/     named after the run's pairs and the settings of the trainings
      genuine.jsonl, dev.jsonl      the run's own pairs
      opposite/                     a run: from target to source
      text-5e6f7a8b/                named after the text and the model that is improved
        decided.json, timing.jsonl  what time has decided; clocks
        round-1/                    back.jsonl, forward.jsonl: made pairs; with -kept: those that are good enough
          model/, test.json         the next model, a run; whether it is better
        verdict.json                how it ended: the last thing written

Each file gets its name when it is complete. A start looks for what is there, and goes on.
"""
