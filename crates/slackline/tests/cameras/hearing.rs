//! What a command says while it runs.

use super::{Cameras, write};
use crate::support::{Scratch, signal, wait_until};

/// ffmpeg warned once that MPEG-TS has no name for a codec, and went on: months of a camera with
/// G.711 sound, or of one that gives JPEGs, were recorded and could not be played. Nobody was told.
#[test]
fn what_a_command_says_while_it_runs_is_told_once_and_what_players_do_not_know_with_what_to_do() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let pid = dir.text("gate");
    let camera = format!(
        "[[camera]]\nname = 'gate'\ncommand = ['sh', '-c', '''echo $$ >{pid}\n\
         m=\"is muxed as a private data stream and may not be recognized upon reading.\"\n\
         echo \"[mpegts @ 0x$$] Stream 0, codec mjpeg, $m\" >&2\n\
         echo \"[mpegts @ 0x$$] Stream 1, codec pcm_alaw, $m\" >&2\n\
         sleep 0.1; while :; do echo \"something odd at $$\" >&2; seq -f %015.0f 0 99; sleep 0.05; \
         done''']\n"
    );
    let cameras = Cameras::start_file(&dir, write(&dir, &camera));
    wait_until(|| cameras.events("said").len() == 1 && cameras.events("unplayable").len() == 2);
    let told = |kind: &str, at: usize, field: &str| {
        cameras.events(kind)[at][field].as_str().unwrap_or_default().to_owned()
    };
    assert!(told("said", 0, "detail").starts_with("its command says: something odd at "));
    assert!(told("unplayable", 0, "detail").contains("mjpeg"));
    assert!(told("unplayable", 0, "next_step").contains(r#"output = ["-c:v", "libx264""#));
    let sound = r#"output = ["-c:v", "copy", "-c:a", "aac"]"#;
    assert!(told("unplayable", 1, "next_step").contains(sound));

    // Another start of it says all of it again, with other numbers, and that is no news.
    let first = std::fs::read_to_string(&pid).unwrap();
    signal(first.trim().parse().unwrap(), "KILL");
    wait_until(|| cameras.events("up").len() == 2);
    wait_until(|| cameras.seen("gate")["notes"].as_array().is_some_and(|notes| notes.len() >= 3));
    assert_eq!((cameras.events("said").len(), cameras.events("unplayable").len()), (1, 2));
    let text = dir.run(&["cameras", &cameras.file, "--status"]).succeeded().text().to_owned();
    for said in ["MPEG-TS has no mjpeg", sound, "its command says: something odd at "] {
        assert!(text.contains(said), "{said}: {text}");
    }
    cameras.end();
}
